// Progress and notes of a running program go to stderr. Write errors are ignored: a closed terminal or a full
// disk must not stop a run.
#pragma once

#include <atomic>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace hstu {

// Columns of the terminal that is stderr; 0: stderr is no terminal, or does not know.
inline int terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// True: tell() writes nothing. Set in ranks other than the first, which would repeat its words.
inline std::atomic<bool> notes_are_muted = false;

// Writes the text to stderr without adding a line end.
template <typename... Args>
void report(fmt::format_string<Args...> text, Args&&... args) {
  const std::string words = fmt::format(text, std::forward<Args>(args)...);
  std::fputs(words.c_str(), stderr);
  std::fflush(stderr);
}

// The same for progress and notes; errors are reported.
template <typename... Args>
void tell(fmt::format_string<Args...> text, Args&&... args) {
  if (!notes_are_muted) report(text, std::forward<Args>(args)...);
}

}  // namespace hstu
