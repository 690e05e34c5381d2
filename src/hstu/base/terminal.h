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

#include "hstu/base/text.h"

namespace hstu {

// Columns of the terminal that is stderr; 0: stderr is no terminal, or does not know.
inline int terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// True: print_note() writes nothing. Set in ranks other than the first, which would repeat its words.
inline std::atomic<bool> notes_are_muted = false;

// Writes the bytes to stderr as they are.
inline void write_to_terminal(const std::string& bytes) {
  std::fputs(bytes.c_str(), stderr);
  std::fflush(stderr);
}

// Writes the text to stderr without adding a line end. Control characters, which names from files may have,
// are written as \x1b.
template <typename... Args>
void report(fmt::format_string<Args...> text, Args&&... args) {
  write_to_terminal(printable(fmt::format(text, std::forward<Args>(args)...)));
}

// The same for progress and notes; errors are reported.
template <typename... Args>
void print_note(fmt::format_string<Args...> text, Args&&... args) {
  if (!notes_are_muted) report(text, std::forward<Args>(args)...);
}

}  // namespace hstu
