// Text in UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace hstu {

// Of the character in UTF-8 at the beginning of a text that is not empty; 0: there is none.
std::size_t bytes_of_character(std::string_view text);

inline bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = bytes_of_character(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace hstu
