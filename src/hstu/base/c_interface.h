// Failures of functions that programs in other languages call: nothing may be thrown into those.
#pragma once

#include <exception>
#include <string>

namespace hstu {

// The text of the last failure in this thread.
inline std::string& last_error() {
  thread_local std::string text;
  return text;
}

// Whether body() has thrown nothing; else last_error() is its message.
template <typename Body>
bool succeeds(const Body& body) {
  try {
    body();
    return true;
  } catch (const std::exception& e) {
    last_error() = e.what();
  } catch (...) {
    last_error() = "an unknown failure";
  }
  return false;
}

}  // namespace hstu
