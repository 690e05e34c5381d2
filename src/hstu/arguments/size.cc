#include "hstu/arguments/size.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "hstu/base/text.h"

namespace hstu {
namespace {

// Bytes of a unit in lower case; 0: there is no such unit.
std::int64_t factor_of(std::string_view unit) {
  if (unit.empty() || unit == "b") return 1;
  const std::size_t power = std::string_view("kmgtp").find(unit.front());
  const std::string_view rest = unit.substr(1);
  if (power == std::string_view::npos || (!rest.empty() && rest != "b" && rest != "ib")) return 0;
  const std::int64_t base = rest == "b" ? 1000 : 1024;
  std::int64_t factor = base;
  for (std::size_t i = 0; i < power; ++i) factor *= base;
  return factor;
}

// `bytes` in the unit of `like`: "192 MiB"; of numbers with many digits the nearest unit, "1.0 PiB".
std::string in_unit(std::int64_t bytes, const Size& like) {
  const double number = static_cast<double>(bytes) / static_cast<double>(like.factor);
  if (!like.unit.empty() && (number < 0.01 || number >= 10'000))
    return human_bytes(static_cast<double>(bytes));
  const std::string digits = like.unit.empty() ? with_separators(bytes) : fmt::format("{:.4g}", number);
  return fmt::format("{} {}", digits, like.unit.empty() ? "bytes" : like.unit);
}

}  // namespace

std::int64_t Size::bytes() const {
  return std::llround(number * static_cast<double>(factor));
}

std::optional<Size> parse_size(std::string_view word) {
  const std::size_t digits = std::min(word.find_first_not_of("0123456789."), word.size());
  const auto number = parse_number<double>(word.substr(0, digits));
  std::string_view unit = word.substr(digits);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  std::string lower(unit);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::int64_t factor = factor_of(lower);
  if (!number || factor == 0 || *number * static_cast<double>(factor) >= 0x1p63) return std::nullopt;
  return Size{*number, std::string(unit), factor};
}

CLI::Validator size_between(std::int64_t least, std::int64_t most) {
  const auto to_bytes = [least, most](std::string& word) {
    const std::optional<Size> size = parse_size(word);
    if (!size) return fmt::format("expected a size such as 512MiB or 1.5GiB, found {}", word);
    if (size->bytes() < least || size->bytes() > most) {
      return fmt::format("expected between {} and {}, found {}", in_unit(least, *size), in_unit(most, *size),
                         word);
    }
    word = std::to_string(size->bytes());
    return std::string();
  };
  return {to_bytes, "SIZE", "size"};
}

CLI::Validator at_least(std::int64_t least) {
  const auto check = [least](std::string& word) {
    const auto value = parse_number<std::int64_t>(word);
    return value && *value >= least ? std::string()
                                    : fmt::format("expected a whole number >= {}, found {}", least, word);
  };
  return {check, fmt::format(">= {}", least), "at least"};
}

}  // namespace hstu
