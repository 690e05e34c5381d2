// Checks of a raw column before the schema is applied to it. Every message names file, column and row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/columns/column_source.h"

namespace hstu {

// The integers of a column; UsageError for any other type. `role` is its use in the schema.
std::span<const std::int64_t> integers_of(const RawBatch& batch, const RawColumn& column, const char* role);

// Whether `text` is an integer of 64 bits that a double rounds.
bool is_rounded_integer(std::string_view text);

// Makes a column of real numbers one of integers: pandas writes integers with nulls as doubles. Other columns
// are left as they are. Error naming the first row whose number is not whole, or so large that its type
// rounds integers: from 2^53, of floats from 2^24.
void make_whole(const RawBatch& batch, RawColumn& column, const char* role);

// Error naming the first row that is null; `advice` says what to do.
void check_no_null(const RawBatch& batch, const RawColumn& column, const std::string& advice);

// Error naming the first row that is negative, because ids count from 0, or 2^63 - 1, because the number of
// rows of a table is one more.
void check_not_negative(const RawBatch& batch, const RawColumn& column, const char* role);

// Error naming the first row that is not below `rows`, the rows that the schema declares; 0: it declares
// none. `role`: "item ids below item_rows".
void check_below(const RawBatch& batch, const RawColumn& column, std::int64_t rows, const char* role);

// Error naming the first row whose text is not among `allowed`.
void check_texts(const RawBatch& batch, const RawColumn& column, std::span<const std::string> allowed);

}  // namespace hstu
