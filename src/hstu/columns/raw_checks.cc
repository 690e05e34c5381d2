#include "hstu/columns/raw_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

std::string place(const RawBatch& batch, const RawColumn& column) {
  return fmt::format("{}: column \"{}\"", batch.file, column.name);
}

template <typename Iterator>
std::string place_of_row(const RawBatch& batch, const RawColumn& column, Iterator begin, Iterator found) {
  return place_of(batch, column, found - begin);
}

}  // namespace

std::span<const std::int64_t> integers_of(const RawBatch& batch, const RawColumn& column, const char* role) {
  if (column.kind != RawColumn::Kind::kInteger) {
    fail_usage("{}: expected integers for the {}, found {}", place(batch, column), role, column.type_name);
  }
  return column.integers;
}

bool is_rounded_integer(std::string_view text) {
  constexpr std::size_t kExactDigits = 15;  // any number of so many is a double
  if (text.size() <= kExactDigits) return false;
  const auto whole = parse_number<std::int64_t>(text);
  if (!whole) return false;
  const auto real = static_cast<double>(*whole);
  return real >= 0x1p63 || static_cast<std::int64_t>(real) != *whole;
}

void make_whole(const RawBatch& batch, RawColumn& column, const char* role) {
  if (column.kind != RawColumn::Kind::kReal) return;
  column.integers.reserve(column.reals.size());
  for (std::size_t r = 0; r < column.reals.size(); ++r) {
    const double value = column.reals[r];
    if (!(std::abs(value) < column.exact) || std::trunc(value) != value) {
      fail("{}: expected an integer for the {}{}, found {} (the column has the type {})",
           place_of(batch, column, static_cast<std::int64_t>(r)), role,
           std::trunc(value) == value
               ? fmt::format(" below {}, beyond which this type rounds integers", column.exact)
               : "",
           value, column.type_name);
    }
    column.integers.push_back(static_cast<std::int64_t>(value));
  }
  column.reals.clear();
  column.kind = RawColumn::Kind::kInteger;
}

void check_no_null(const RawBatch& batch, const RawColumn& column, const std::string& advice) {
  const auto found = std::find(column.nulls.begin(), column.nulls.end(), 1);
  if (found == column.nulls.end()) return;
  fail("{}: expected a value, found null or NaN; {}",
       place_of_row(batch, column, column.nulls.begin(), found), advice);
}

void check_not_negative(const RawBatch& batch, const RawColumn& column, const char* role) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const auto& values = column.integers;
  const auto found = std::find_if(values.begin(), values.end(),
                                  [](std::int64_t value) { return value < 0 || value == kLargest; });
  if (found == values.end()) return;
  fail("{}: expected {} from 0 to 2^63 - 2, found {}", place_of_row(batch, column, values.begin(), found),
       role, *found);
}

void check_below(const RawBatch& batch, const RawColumn& column, std::int64_t rows, const char* role) {
  if (rows == 0) return;
  if (column.kind != RawColumn::Kind::kInteger)
    fail_usage("{}: expected {} = {}, found {}, whose ids are hashes", place(batch, column), role, rows,
               column.type_name);
  const auto& values = column.integers;
  const auto found =
      std::find_if(values.begin(), values.end(), [&](std::int64_t value) { return value >= rows; });
  if (found == values.end()) return;
  fail("{}: expected {} = {}, found {}", place_of_row(batch, column, values.begin(), found), role, rows,
       *found);
}

void check_texts(const RawBatch& batch, const RawColumn& column, std::span<const std::string> allowed) {
  if (column.untyped) return;
  if (column.kind != RawColumn::Kind::kText) {
    fail_usage("{}: expected strings, found {}", place(batch, column), column.type_name);
  }
  // A dictionary may list texts that no row uses, so the rows are checked.
  std::vector<bool> known;
  for (const std::string& text : column.texts) {
    known.push_back(contains(allowed, text));
  }
  const auto& codes = column.integers;
  const auto found = std::find_if(codes.begin(), codes.end(), [&](std::int64_t code) {
    return code >= 0 && !known[static_cast<std::size_t>(code)];
  });
  if (found == codes.end()) return;
  fail("{}: expected one of {}, found \"{}\"", place_of_row(batch, column, codes.begin(), found),
       fmt::join(allowed, ", "), column.texts[static_cast<std::size_t>(*found)]);
}

}  // namespace hstu
