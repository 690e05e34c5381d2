// Words that other programs write for null.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "hstu/columns/column_source.h"

namespace hstu {

// Whether a text looks like the null of a database or of a library: "NULL", "\N", "nan", "None", "N/A" and
// the like, in capital or small letters.
bool is_null_word(std::string_view text);

// Makes the rows of a column of texts null whose text is one of `words`. Other columns are left as they are.
void mark_null_words(std::span<const std::string> words, RawColumn& column);

// [word] rows of a column of texts that have the word, of those that is_null_word() knows.
using NullWordCounts = std::map<std::string, std::int64_t>;
void count_null_words(const RawColumn& column, NullWordCounts& counts);

}  // namespace hstu
