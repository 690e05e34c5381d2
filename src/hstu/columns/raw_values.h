// Raw columns as the numbers of a dataset: integers as they are, texts as ids or codes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hstu/columns/column_source.h"
#include "hstu/dataset/integer_column.h"

namespace hstu {

using NamedIds = std::vector<std::pair<std::int64_t, std::string>>;  // ids that are hashes, and their texts

// Appends the ids of a column without nulls: integers, or the hashes of texts. Returns the distinct texts
// with their ids, in the order of their first rows. UsageError for a column of another type; Error naming the
// row of a negative id or an empty text. `role`: "user id".
NamedIds append_ids(const RawBatch& batch, const RawColumn& column, const std::string& role,
                    IntegerColumn& to);

// The texts of a column's own codes: 0 = null, i + 1 = (*texts)[i]; absent: the column has integers.
using CodedTexts = std::optional<std::vector<std::string>>;

// Appends the values of a context or attribute: integers, or the codes of the texts that it returns, in the
// order of their first rows. UsageError for a column of another type. `role`: "context".
CodedTexts append_values(const RawBatch& batch, const RawColumn& column, const char* role, IntegerColumn& to);

}  // namespace hstu
