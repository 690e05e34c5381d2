// Words for people: nearest known names, counts, sizes and durations.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace hstu {

// The known word closest to `word`, or "" when none is near enough to be meant (edit distance).
std::string nearest_word(std::string_view word, std::span<const std::string> known);

// "; did you mean \"x\"?" or a list of what is known.
std::string suggestion(std::string_view word, std::span<const std::string> known);

std::string with_separators(std::int64_t count);  // 1234567 -> "1,234,567"
std::string human_bytes(double bytes);            // 1536 -> "1.5 KiB"
std::string human_duration(double seconds);       // 3725 -> "1 h 02 min"
std::vector<std::string> split(std::string_view text, char separator);

// The number that is the whole of `text`, if it is one and fits.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// `&`, `<`, `>` and quotes as HTML and XML spell them.
std::string escaped_html(const std::string& text);

// Rows of cells as aligned columns; the first row is the header, ruled off. Numbers are the caller's
// business.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace hstu
