// Rows of tables whose ids are codes of texts, in a model that goes on with another dataset.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hstu/checkpoint/checkpoint.h"
#include "hstu/dataset/dataset.h"
#include "hstu/options/options.h"

namespace hstu {

// By table: the id in this dataset of each id of the checkpoint's, -1 where the text has none. Tables whose
// ids mean the same in both are left out. UsageError, naming the table and the column, if texts have other
// codes and cannot be matched: those of the checkpoint's dataset are gone, or the table's ids are hashes of
// codes.
std::map<std::string, std::vector<std::int64_t>> match_text_rows(const Checkpoint& checkpoint,
                                                                 const RunOptions& options,
                                                                 const Dataset& dataset);

}  // namespace hstu
