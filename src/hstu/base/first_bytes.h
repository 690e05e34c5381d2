// What a file that should be text in UTF-8 is instead, by its first bytes.
#pragma once

#include <string_view>

namespace hstu {

struct FirstBytes {
  std::string_view bytes;  // at the beginning of the file
  const char* what;        // "compressed by gzip"
  const char* advice;      // "unpack it"
};

// nullptr: text, or nothing known. 16 bytes of the beginning are enough, but for tar archives: 262.
const FirstBytes* known_first_bytes(std::string_view beginning);

// Whether no byte is a control character, but for tabs and ends of lines.
bool is_text(std::string_view bytes);

}  // namespace hstu
