// Progress and notes of a running program go to stderr. Write errors are ignored: a closed terminal or a full
// disk must not stop a run.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace hstu {

// Writes the text to stderr without adding a line end.
template <typename... Args>
void tell(fmt::format_string<Args...> text, Args&&... args) {
  const std::string words = fmt::format(text, std::forward<Args>(args)...);
  std::fputs(words.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace hstu
