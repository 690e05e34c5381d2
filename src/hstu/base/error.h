// Errors carry a message for the user: what was expected, what was found, what to do next.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace hstu {

// A run failed (exit status 1).
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// No room is left where something was to be written.
class DiskFullError : public Error {
 public:
  using Error::Error;
};

// A number that training computed is NaN or infinite.
class NotFiniteError : public Error {
 public:
  using Error::Error;
};

// The user's words, configuration or input paths are wrong (exit status 2).
class UsageError : public Error {
 public:
  using Error::Error;
};

// A broken promise inside the program: a defect of hstu, not of its input. The message ends with the place.
class InternalError : public Error {
 public:
  using Error::Error;
};

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(fmt::format(text, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void fail_usage(fmt::format_string<Args...> text, Args&&... args) {
  throw UsageError(fmt::format(text, std::forward<Args>(args)...));
}

// check(n > 0, "expected a positive n, found {}", n): input and state that a user can set right.
template <typename... Args>
void check(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw Error(fmt::format(text, std::forward<Args>(args)...));
}

// A format string and the place of the call it stands in. (clang 14 has the builtins, not
// std::source_location.)
template <typename... Args>
struct PlacedFormat {
  template <typename Text>
  consteval PlacedFormat(const Text& t, const char* f = __builtin_FILE(), int l = __builtin_LINE())  // NOLINT
      : text(t), file(f), line(l) {}
  fmt::format_string<Args...> text;
  const char* file;
  int line;
};

// require(x.rows() == n, "expected {} rows, found {}", n, x.rows()): a caller inside hstu broke a contract.
template <typename... Args>
void require(bool condition, PlacedFormat<std::type_identity_t<Args>...> format, Args&&... args) {
  if (!condition) {
    throw InternalError(fmt::format("{} (defect at {}:{}, please report it)",
                                    fmt::format(format.text, std::forward<Args>(args)...), format.file,
                                    format.line));
  }
}

}  // namespace hstu
