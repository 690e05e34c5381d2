// What a program tells while it works. A terminal that is gone, or a file on a full disk in its place, is no
// reason to stop: what cannot be told is dropped.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace hstu {

// Writes to standard error, as it is: the caller ends its lines.
template <typename... Args>
void tell(fmt::format_string<Args...> text, Args&&... args) {
  const std::string words = fmt::format(text, std::forward<Args>(args)...);
  std::fputs(words.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace hstu
