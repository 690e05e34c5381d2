// Failures of functions that programs in other languages call: nothing may be thrown into those.
#pragma once

#include <exception>
#include <string>

#include <omp.h>
#include <pthread.h>
#include <unistd.h>

#include "hstu/base/error.h"

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

// What belongs to the process that opened it: a process that was forked has neither its threads nor its
// locks.
class OfOneProcess {
 public:
  // A child that opens its own has none of the threads that shared its parent's loops, and would wait for
  // them: they end before a fork, and begin again when they are needed.
  OfOneProcess() {
    static const int registered =
        ::pthread_atfork([] { omp_pause_resource_all(omp_pause_soft); }, nullptr, nullptr);
    check(registered == 0, "pthread_atfork has failed: {}", registered);
  }
  bool is_ours() const { return ::getpid() == process_; }
  void check_is_ours(const char* what) const {
    check(is_ours(), "process {} opened this {}, and process {} was forked from it: open one after the fork",
          process_, what, ::getpid());
  }

 private:
  pid_t process_ = ::getpid();
};

}  // namespace hstu
