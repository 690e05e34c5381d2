#include "hstu/predict/converter.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hstu/base/child_processes.h"
#include "hstu/base/error.h"

namespace hstu {

Converter start_converter(const std::vector<std::string>& words, Direction direction) {
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").replace_filename("hstu-prepare");
  int ends[2];
  check(::pipe2(ends, O_CLOEXEC) == 0, "cannot make a pipe: {}", std::strerror(errno));
  const bool from = direction == Direction::from;
  const int mine = from ? ends[0] : ends[1], its = from ? ends[1] : ends[0];
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, its, from ? STDOUT_FILENO : STDIN_FILENO);
  // A converter that writes a file says nothing else; what it prints must not mix with hstu's result.
  if (!from) ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  std::vector<std::string> copies{"hstu"};
  copies.insert(copies.end(), words.begin(), words.end());
  const std::vector<char*> arguments = argument_pointers(copies);
  pid_t process = -1;
  const int error = ::posix_spawn(&process, program.c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(its);
  if (error != 0) {
    ::close(mine);
    fail("cannot start {}, which reads and writes Parquet: {}. It must be in the folder of hstu", program,
         std::strerror(error));
  }
  return {mine, process};
}

int end_converter(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace hstu
