// Conditions as text: what parse_condition() reads, to_string() writes.
#include <algorithm>
#include <string>
#include <string_view>

#include "hstu/base/choice.h"
#include "hstu/base/error.h"
#include "hstu/events/condition.h"

namespace hstu {
namespace {

// Longer operators first: "<=" must not be read as "<".
constexpr Choice<Comparison> kOperators[] = {{"!=", Comparison::kNotEqual}, {"<=", Comparison::kAtMost},
                                             {">=", Comparison::kAtLeast},  {"=", Comparison::kEqual},
                                             {"<", Comparison::kLess},      {">", Comparison::kMore}};
constexpr std::string_view kOperatorCharacters = "!<>=";
constexpr std::string_view kQuotes = "'\"";

// What other languages write for an operator of ours.
constexpr Choice<std::string_view> kForeignOperators[] = {
    {"==", "="}, {"=>", ">="}, {"=<", "<="}, {"<>", "!="}, {"=!", "!="}};

bool is_one_of(char c, std::string_view characters) {
  return characters.find(c) != std::string_view::npos;
}

// Reads a condition from the left and points at the first character that it cannot read.
class ConditionReader {
 public:
  explicit ConditionReader(std::string_view text) : text_(text) {}

  Condition read() {
    Condition condition;
    skip_blanks();
    const std::size_t begin = at_;
    condition.column = part("column", kOperatorCharacters);
    if (condition.column.empty()) fail_at(begin, "the name of a column is empty");
    condition.comparison = comparison();
    condition.value = part("value", "");
    return condition;
  }

 private:
  [[noreturn]] void fail_at(std::size_t position, const std::string& reason) const {
    std::string below;  // puts the caret under the place, whatever the width of the characters before it
    for (const char c : text_.substr(0, position)) {
      if (c == '\t') below += c;
      const bool begins_character = (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
      if (c != '\t' && begins_character) below += ' ';
    }
    fail_usage("expected a condition such as \"event_type = listen\" or \"rating >= 4\": {}\n    {}\n    {}^",
               reason, text_, below);
  }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  // A column or a value: in quotes, or up to one of `ends` or the end of the text.
  std::string part(const char* kind, std::string_view ends) {
    skip_blanks();
    std::string_view found =
        at_ < text_.size() && is_one_of(text_[at_], kQuotes) ? quoted(ends) : bare(kind, ends);
    return std::string(found);
  }

  std::string_view quoted(std::string_view ends) {
    const std::size_t open = at_;
    const std::size_t close = text_.find(text_[open], open + 1);
    if (close == std::string_view::npos) fail_at(open, "this quote is not closed");
    at_ = close + 1;
    skip_blanks();
    if (at_ < text_.size() && !is_one_of(text_[at_], ends))
      fail_at(at_, "nothing may follow a closed quote here");
    return text_.substr(open + 1, close - open - 1);
  }

  std::string_view bare(const char* kind, std::string_view ends) {
    const std::size_t begin = at_;
    std::size_t end = std::min(text_.find_first_of(kOperatorCharacters, begin), text_.size());
    if (end < text_.size() && ends.empty())
      fail_at(end, fmt::format(
                       "a {} that contains {} needs quotes; further conditions are further texts of the list",
                       kind, text_[end]));
    at_ = end;
    while (end > begin && text_[end - 1] == ' ') --end;
    if (end == begin) fail_at(begin, fmt::format("a {} is missing", kind));
    if (is_one_of(text_[end - 1], kQuotes)) fail_at(end - 1, "this quote was not opened");
    return text_.substr(begin, end - begin);
  }

  Comparison comparison() {
    const std::string_view rest = text_.substr(at_);
    if (rest.empty()) {
      fail_at(at_, fmt::format("an operator is missing: one of {}", fmt::join(words_of(kOperators), " ")));
    }
    for (const auto& [word, ours] : kForeignOperators) {
      if (rest.starts_with(word)) fail_at(at_, fmt::format("write {} instead of {}", ours, word));
    }
    for (const Choice<Comparison>& candidate : kOperators) {
      if (!rest.starts_with(candidate.word)) continue;
      at_ += candidate.word.size();
      return candidate.value;
    }
    fail_at(at_, fmt::format("expected one of {}", fmt::join(words_of(kOperators), " ")));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// In quotes if parse_condition() would not read the text without them.
std::string quoted_if_necessary(const std::string& text) {
  const bool plain = !text.empty() && text.front() != ' ' && text.back() != ' ' &&
                     !is_one_of(text.front(), kQuotes) && !is_one_of(text.back(), kQuotes) &&
                     text.find_first_of(kOperatorCharacters) == std::string::npos;
  if (plain) return text;
  const char quote = text.find('\'') == std::string::npos ? '\'' : '"';
  return quote + text + quote;
}

}  // namespace

Condition parse_condition(std::string_view text) {
  return ConditionReader(text).read();
}

std::string to_string(const Condition& condition) {
  return fmt::format("{} {} {}", quoted_if_necessary(condition.column),
                     word_of(kOperators, condition.comparison), quoted_if_necessary(condition.value));
}

}  // namespace hstu
