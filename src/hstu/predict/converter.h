// hstu-prepare as a process that turns Parquet into CSV or CSV into Parquet: hstu itself links no Arrow.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace hstu {

enum class Direction { from, to };  // the caller reads from the process, or writes to it

struct Converter {
  int descriptor = -1;  // the caller's end of the pipe
  pid_t process = -1;
};

// Starts hstu-prepare, in the folder of this program, with these words. Throws Error if it cannot be started.
Converter start_converter(const std::vector<std::string>& words, Direction direction);

// Waits for the end of the process. Returns its exit status, or -1 if a signal ended it.
int end_converter(pid_t process);

}  // namespace hstu
