// Programs that a test starts.
#pragma once

#include <cstdio>
#include <string>

#include <sys/wait.h>

namespace hstu {

struct CommandResult {
  int exit_status;
  std::string text;  // both streams
};

inline CommandResult run_command(const std::string& command) {
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  CommandResult result{-1, ""};
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) result.text.append(buffer, n);
  const int status = ::pclose(pipe);
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

inline bool has_command(const std::string& name) {
  return run_command("command -v " + name).exit_status == 0;
}

}  // namespace hstu
