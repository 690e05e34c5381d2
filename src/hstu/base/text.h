// Text for messages: nearest known names, counts, sizes and durations.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

namespace hstu {

// The known word with the smallest edit distance to `word`, as "; did you mean \"x\"?"; a list of all known
// words if none is similar enough.
std::string suggestion(std::string_view word, std::span<const std::string> known);

// Whether a name may become a part of a path and of a configuration key: what kPlainName says.
bool is_plain_name(std::string_view name);
inline constexpr const char* kPlainName = "a name of letters, digits, _ and -";

std::string with_separators(std::int64_t count);  // 1234567 -> "1,234,567"
std::string human_bytes(double bytes);            // 1536 -> "1.5 KiB"
std::string human_duration(double seconds);       // 3725 -> "1 h 02 min"
std::vector<std::string> split(std::string_view text, char separator);

// The number that `text` consists of, if it is a number and in range.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(value)) return std::nullopt;  // from_chars reads "nan" and "inf"
  }
  return value;
}

// `text` with control characters but line ends and tabs, and bytes that are no UTF-8, written as \x1b.
std::string printable(std::string_view text);

// `text` with `&`, `<`, `>` and quotes escaped as in HTML and XML.
std::string escaped_html(const std::string& text);

// Rows of cells as aligned columns; the first row is the header, underlined. The caller formats numbers.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace hstu
