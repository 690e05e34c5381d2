// Ends a log with run_stop, status "aborted", when the process that writes it ends without an end.
#pragma once

#include <sys/types.h>

namespace hstu {

// Appends the line unless the log ends with run_stop already. Allocates nothing and throws nothing, so that
// it works without memory and in a child of a program with threads.
void append_abort(int log) noexcept;

// A child process that does this when the process that made it is killed by a signal, also by the system when
// memory is short, or ends in any other way without its destructors. The destructor ends the child.
class AbortWatch {
 public:
  // `log`: a descriptor that appends and reads. Throws Error if no process can be started.
  explicit AbortWatch(int log);
  ~AbortWatch();
  AbortWatch(const AbortWatch&) = delete;
  AbortWatch& operator=(const AbortWatch&) = delete;

 private:
  int pipe_ = -1;
  pid_t child_ = -1;
};

}  // namespace hstu
