#include "hstu/base/text_form.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr std::size_t kFewestNumbers = 20, kFewestLists = 8;  // a scale of ratings has fewer

// Also with a decimal comma.
std::optional<double> number_of(std::string_view text) {
  std::string word(text);
  if (std::count(word.begin(), word.end(), ',') == 1 && word.find('.') == std::string::npos)
    std::replace(word.begin(), word.end(), ',', '.');
  return parse_number<double>(word);
}

bool are_numbers(std::span<const std::string_view> texts) {
  std::size_t numbers = 0, fractions = 0;
  for (const std::string_view text : texts) {
    const auto number = number_of(text);
    numbers += number ? 1 : 0;
    fractions += number && std::trunc(*number) != *number ? 1 : 0;
  }
  return texts.size() >= kFewestNumbers && 10 * numbers >= 9 * texts.size() && 10 * fractions >= numbers;
}

bool are_lists(std::span<const std::string_view> texts, char separator) {
  constexpr std::string_view kAround = " []{}()\"'";
  std::unordered_set<std::string> parts;
  std::size_t lists = 0;
  for (const std::string_view text : texts) {
    lists += text.find(separator) != std::string_view::npos ? 1 : 0;
    for (const std::string& part : split(text, separator)) {
      const std::size_t begin = part.find_first_not_of(kAround);
      if (begin != std::string::npos)
        parts.insert(part.substr(begin, part.find_last_not_of(kAround) + 1 - begin));
    }
  }
  return texts.size() >= kFewestLists && 2 * lists > texts.size() && parts.size() < texts.size();
}

}  // namespace

std::string unlike_categories(std::span<const std::string_view> texts) {
  if (are_numbers(texts)) return "numbers with fractions";
  for (const char separator : {'|', ';', ','})
    if (are_lists(texts, separator)) return fmt::format("lists with {}", separator);
  return "";
}

}  // namespace hstu
