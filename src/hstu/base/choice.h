// The words of an enumeration. One table of them serves parsing, messages, help texts and the configuration:
//
//   inline constexpr Choice<Decay> kDecays[] = {{"none", Decay::none}, {"linear", Decay::linear}};
//
//   parse_word(kDecays, "linear", "decay")   // Decay::linear; UsageError for a word that is not in the table
//   word_of(kDecays, Decay::none)            // "none"
//   words_of(kDecays)                        // {"none", "linear"}
//   fields.choice("decay", o.decay, kDecays, "after the warm-up");   // config/config.h
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {

template <typename Enum>
struct Choice {
  std::string_view word;
  Enum value;
};

// Every word of the table, in its order.
template <typename Enum, std::size_t kCount>
std::vector<std::string> words_of(const Choice<Enum> (&table)[kCount]) {
  std::vector<std::string> list;
  for (const Choice<Enum>& choice : table) list.emplace_back(choice.word);
  return list;
}

// "a, b or c": every word of the table, for a sentence.
template <typename Enum, std::size_t kCount>
std::string list_of(const Choice<Enum> (&table)[kCount]) {
  std::string text(table[0].word);
  for (std::size_t i = 1; i < kCount; ++i) {
    text += i + 1 < kCount ? ", " : " or ";
    text += table[i].word;
  }
  return text;
}

// The word of `value`, which must be in the table.
template <typename Enum, std::size_t kCount>
std::string word_of(const Choice<Enum> (&table)[kCount], Enum value) {
  for (const Choice<Enum>& choice : table) {
    if (choice.value == value) return std::string(choice.word);
  }
  require(false, "the value {} has no word", static_cast<int>(value));
  return "";
}

// The value of `word`. UsageError for any other word, naming `what` and the nearest word.
template <typename Enum, std::size_t kCount>
Enum parse_word(const Choice<Enum> (&table)[kCount], std::string_view word, std::string_view what) {
  for (const Choice<Enum>& choice : table) {
    if (choice.word == word) return choice.value;
  }
  fail_usage("unknown {} \"{}\"{}", what, word, suggestion(word, words_of(table)));
}

}  // namespace hstu
