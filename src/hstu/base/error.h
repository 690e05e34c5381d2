// Errors have a message for the user: what was expected, what was found, what to do next.
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

// The disk is full.
class DiskFullError : public Error {
 public:
  using Error::Error;
};

// A number that training computed is NaN or infinite.
class NotFiniteError : public Error {
 public:
  using Error::Error;
};

// The user's arguments, configuration or input paths are wrong (exit status 2).
class UsageError : public Error {
 public:
  using Error::Error;
};

// A violated contract inside the program: a defect of hstu, not of its input. The message ends with the
// source location.
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

// check(n > 0, "expected a positive n, found {}", n): for input and state that a user can correct.
template <typename... Args>
void check(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw Error(fmt::format(text, std::forward<Args>(args)...));
}

// A format string and the location of the call that contains it. (clang 14 has the builtins, but not
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

// require(x.rows() == n, "expected {} rows, found {}", n, x.rows()): for contracts between parts of hstu.
template <typename... Args>
void require(bool condition, PlacedFormat<std::type_identity_t<Args>...> format, Args&&... args) {
  if (!condition) {
    throw InternalError(fmt::format("{} (defect at {}:{}, please report it)",
                                    fmt::format(format.text, std::forward<Args>(args)...), format.file,
                                    format.line));
  }
}

// The formatter of a type with to_string(). As an argument of check() or require() a value costs nothing
// until it is needed; to_string() as an argument is called each time.
template <typename T>
struct ToStringFormatter {
  constexpr auto parse(const fmt::format_parse_context& context) { return context.begin(); }
  auto format(const T& value, fmt::format_context& context) const {
    return fmt::format_to(context.out(), "{}", to_string(value));
  }
};

}  // namespace hstu
