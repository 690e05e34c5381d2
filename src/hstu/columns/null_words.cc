#include "hstu/columns/null_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "hstu/base/contains.h"

namespace hstu {
namespace {

constexpr std::array<std::string_view, 13> kNullWords{"null", "\\n",    "nan",      "none",   "n/a",
                                                      "#n/a", "<na>",   "(null)",   "[null]", "nil",
                                                      "nat",  "<null>", "undefined"};
constexpr std::size_t kLongest = 9;

}  // namespace

bool is_null_word(std::string_view text) {
  constexpr std::string_view kFirst = "nN\\#<([uU";  // most ids are decided by their first character
  if (text.size() < 2 || text.size() > kLongest || kFirst.find(text.front()) == std::string_view::npos)
    return false;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return contains(kNullWords, lower);
}

void mark_null_words(std::span<const std::string> words, RawColumn& column) {
  if (words.empty() || column.kind != RawColumn::Kind::kText) return;
  std::vector<std::uint8_t> null(column.texts.size());
  std::transform(column.texts.begin(), column.texts.end(), null.begin(),
                 [&](const std::string& text) { return contains(words, text) ? 1 : 0; });
  if (!contains(null, 1)) return;
  column.nulls.resize(column.integers.size());
  for (std::size_t r = 0; r < column.integers.size(); ++r) {
    std::int64_t& code = column.integers[r];
    if (code < 0 || null[static_cast<std::size_t>(code)] == 0) continue;
    code = -1;
    column.nulls[r] = 1;
  }
}

void count_null_words(const RawColumn& column, NullWordCounts& counts) {
  if (column.kind != RawColumn::Kind::kText) return;
  for (std::size_t code = 0; code < column.texts.size(); ++code) {
    if (!is_null_word(column.texts[code])) continue;
    const auto rows =
        std::count(column.integers.begin(), column.integers.end(), static_cast<std::int64_t>(code));
    if (rows > 0) counts[column.texts[code]] += rows;
  }
}

}  // namespace hstu
