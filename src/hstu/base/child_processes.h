// Runs this program's commands as processes of their own.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hstu/base/files.h"

namespace hstu {

// Of the words, and the null pointer that execv needs behind them. Valid until the words change.
std::vector<char*> argument_pointers(std::vector<std::string>& words);

struct ChildCommand {
  std::vector<std::string> words;  // of this program, behind its name
  Path output;                     // both streams are appended to this file
};

// Runs the commands in their order, at most `jobs` at a time. `started` and `ended` are called in this
// thread, with the command's index and its exit status (128 + the signal that ended it). The first SIGINT or
// SIGTERM of this process is passed on as SIGTERM, and no further command starts; so is every later one. A
// child whose parent is killed gets SIGTERM. Returns true if all commands were started. Throws Error if a
// process cannot be started. Call it before the program has other threads.
bool run_children(std::span<const ChildCommand> commands, int jobs,
                  const std::function<void(std::size_t)>& started,
                  const std::function<void(std::size_t, int)>& ended);

}  // namespace hstu
