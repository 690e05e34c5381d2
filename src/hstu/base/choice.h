// Words for the values of an enumeration, in one table that the configuration, its reference page, messages and
// files share:
//   enum class Decay { none, linear };
//   inline constexpr Choice<Decay> kDecays[] = {{"none", Decay::none}, {"linear", Decay::linear}};
#pragma once

#include <span>
#include <string>
#include <type_traits>

#include "hstu/base/error.h"

namespace hstu {

template <typename Enum>
struct Choice {
  const char* word;
  Enum value;
};

// Throws InternalError for a value that the table lacks.
template <typename Enum>
std::string word_of(std::span<const Choice<std::type_identity_t<Enum>>> words, Enum value) {
  for (const auto& choice : words)
    if (choice.value == value) return choice.word;
  throw InternalError("a value of an enumeration has no word");
}

}  // namespace hstu
