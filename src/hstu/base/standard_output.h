// Results for people. Those for programs, which must not change (JSON, CSV), are written by fmt::print as
// they are.
#pragma once

#include <utility>

#include <fmt/format.h>

#include "hstu/base/text.h"

namespace hstu {

// Writes the text to stdout. Control characters, which texts of files may have, are written as \x1b.
template <typename... Args>
void print_text(fmt::format_string<Args...> text, Args&&... args) {
  fmt::print("{}", printable(fmt::format(text, std::forward<Args>(args)...)));
}

}  // namespace hstu
