#include "hstu/base/child_processes.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr int kCannotStart = 127;

// Blocks the signals while it exists: they wait for sigwait().
class BlockedSignals {
 public:
  BlockedSignals() {
    std::signal(SIGCHLD, SIG_DFL);  // ignored, it would never arrive
    sigemptyset(&awaited_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&awaited_, signal);
    ::sigprocmask(SIG_BLOCK, &awaited_, &before_);
  }
  ~BlockedSignals() { restore(); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  void restore() const { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  int wait() const {
    int signal = 0;
    ::sigwait(&awaited_, &signal);
    return signal;
  }

 private:
  sigset_t awaited_{}, before_{};
};

pid_t start(const ChildCommand& command, const BlockedSignals& signals) {
  std::vector<std::string> words{"hstu"};
  words.insert(words.end(), command.words.begin(), command.words.end());
  const std::vector<char*> arguments = argument_pointers(words);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  check(child >= 0, "cannot start a process: {}", std::strerror(errno));
  if (child != 0) return child;
  // Ctrl-C reaches this program alone, which passes it on once: a second signal would end a run without a
  // save.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kCannotStart);
  const int output = ::open(command.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (output < 0 || input < 0 || ::dup2(input, STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 ||
      ::dup2(output, STDERR_FILENO) < 0) {
    ::_exit(kCannotStart);
  }
  signals.restore();
  ::execv("/proc/self/exe", arguments.data());
  ::_exit(kCannotStart);
}

}  // namespace

std::vector<char*> argument_pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

bool run_children(std::span<const ChildCommand> commands, int jobs,
                  const std::function<void(std::size_t)>& started,
                  const std::function<void(std::size_t, int)>& ended) {
  const BlockedSignals signals;
  std::map<pid_t, std::size_t> running;
  std::size_t next = 0;
  bool stopped = false;
  while (true) {
    for (; !stopped && next < commands.size() && running.size() < static_cast<std::size_t>(jobs); ++next) {
      running[start(commands[next], signals)] = next;
      started(next);
    }
    if (running.empty()) return next == commands.size();
    if (signals.wait() != SIGCHLD) {
      stopped = true;
      for (const auto& [process, index] : running) ::kill(process, SIGTERM);
      continue;
    }
    int status = 0;
    for (pid_t process = ::waitpid(-1, &status, WNOHANG); process > 0;
         process = ::waitpid(-1, &status, WNOHANG)) {
      const auto found = running.find(process);
      if (found == running.end()) continue;
      const std::size_t index = found->second;
      running.erase(found);
      ended(index, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
  }
}

}  // namespace hstu
