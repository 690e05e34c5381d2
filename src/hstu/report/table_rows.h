// The size of an embedding table for people.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/base/text.h"

namespace hstu {

// The most rows that a table may have. Ids that are hashes of texts are as large as 2^63, and a number of 19
// digits says nothing about a table, whose rows exist from their first use.
inline std::string most_rows_text(std::int64_t rows) {
  constexpr std::int64_t kMeant = std::int64_t{1} << 48;  // no table of a machine has as many
  return rows < kMeant ? with_separators(rows) : "one for each id";
}

}  // namespace hstu
