#include "hstu/comm/local_ranks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hstu/base/child_processes.h"
#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/terminal.h"
#include "hstu/comm/group_token.h"
#include "hstu/comm/join.h"
#include "hstu/comm/socket.h"

namespace hstu {
namespace {

std::atomic<int> signals = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only touch lock-free atomics");
void count_signal(int /*signal*/) {
  ++signals;
}
// SIGHUP and SIGUSR1 ask to save, however often they come.
void note_signal(int /*signal*/) {
  int none = 0;
  signals.compare_exchange_strong(none, 1);
}

struct Child {
  pid_t process = 0;  // 0: has ended
  int status = 0;     // as waitpid gives it
};

// In the child: only calls that are safe after fork.
[[noreturn]] void become(const char* program, char* const* arguments, pid_t parent) {
  ::setpgid(0, 0);  // a Ctrl-C reaches the ranks through their parent alone
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::execv(program, arguments);
  ::_exit(127);
}

pid_t start(const std::string& program, std::vector<std::string> words) {
  const std::vector<char*> arguments = argument_pointers(words);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  check(child >= 0, "cannot start a process: {}: start fewer ranks", std::strerror(errno));
  if (child == 0) become(program.c_str(), arguments.data(), parent);
  return child;
}

void signal_all(const std::vector<Child>& children, int signal) {
  for (const Child& child : children)
    if (child.process > 0) ::kill(child.process, signal);
}

// A pipe that ends when every rank has closed its end: all have met, or ended.
class Joining {
 public:
  Joining() {
    std::array<int, 2> ends{};
    check(::pipe2(ends.data(), O_CLOEXEC) == 0, "cannot open a pipe: {}", std::strerror(errno));
    read_ = Socket(ends[0]);
    write_ = Socket(ends[1]);
    ::fcntl(write_.descriptor(), F_SETFD, 0);  // the ranks inherit it
  }
  int descriptor() const { return write_.descriptor(); }
  void all_started() { write_.close(); }
  bool is_over() const {
    pollfd end{read_.descriptor(), POLLIN, 0};
    return ::poll(&end, 1, 0) == 1;
  }

 private:
  Socket read_, write_;
};

class Watch {
 public:
  Watch(const Joining& joining, double grace_seconds) : joining_(joining), grace_seconds_(grace_seconds) {}

  void wait_for(std::vector<Child>& children) {
    int passed_on = 0;
    while (any_runs(children)) {
      collect(children);
      const int received = signals;
      if (received > passed_on && received == 1) ::kill(children.front().process, SIGTERM);
      if (received > std::max(passed_on, 1)) signal_all(children, SIGKILL);
      passed_on = received;
      if (failed_ && seconds_since(failed_at_) > grace_seconds_) end_all(children);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  // Of the whole group.
  int status(const std::vector<Child>& children) const {
    if (cause_ != 0) return cause_;
    return WIFEXITED(children.front().status) ? WEXITSTATUS(children.front().status) : 1;
  }

 private:
  static bool any_runs(const std::vector<Child>& children) {
    return std::any_of(children.begin(), children.end(), [](const Child& c) { return c.process > 0; });
  }

  void end_all(const std::vector<Child>& children) {
    for (std::size_t r = 0; r < children.size() && !ended_all_ && grace_seconds_ > 0; ++r)
      if (children[r].process > 0)
        print_note("hstu: rank {} did not end within {:.0f} s: it hangs, and is killed\n", r, grace_seconds_);
    ended_all_ = true;
    signal_all(children, SIGKILL);
  }

  void collect(std::vector<Child>& children) {
    for (std::size_t r = 0; r < children.size(); ++r) {
      Child& child = children[r];
      if (child.process == 0 || ::waitpid(child.process, &child.status, WNOHANG) != child.process) continue;
      child.process = 0;
      note_end(children, r, child.status);
    }
  }

  void note_end(const std::vector<Child>& children, std::size_t rank, int status) {
    constexpr int kInterrupted = 75;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (code == 0 || code == kInterrupted) return;
    if (!failed_) {
      failed_at_ = Clock::now();
      if (!joining_.is_over())
        grace_seconds_ = 0;           // the others wait for this rank, and do not notice its end
      signal_all(children, SIGCONT);  // a rank that was stopped ends like the others
    }
    failed_ = true;
    if (cause_ != 0 || code == kLostRankStatus) return;
    cause_ = code;
    if (!WIFSIGNALED(status) || ended_all_) return;  // it has said why, or was ended here
    const int signal = WTERMSIG(status);
    print_note(
        "hstu: rank {} was killed by signal {} ({}){}: all ranks end; hstu train --resume RUN continues from "
        "the "
        "newest checkpoint\n",
        rank, signal, ::strsignal(signal), signal == SIGKILL ? "; the machine may be out of memory" : "");
  }

  const Joining& joining_;
  double grace_seconds_;
  bool ended_all_ = false;
  bool failed_ = false;
  Clock::time_point failed_at_;
  int cause_ = 0;  // status of the first rank that failed; 0: none
};

}  // namespace

int run_local_ranks(int ranks, const std::string& program, const std::vector<std::string>& arguments,
                    double grace_seconds) {
  Joining joining;
  Listener listener = listen_on("127.0.0.1", 0);
  ::fcntl(listener.socket.descriptor(), F_SETFD, 0);     // rank 0 inherits it
  const Socket token(token_descriptor(random_token()));  // the ranks inherit it
  std::signal(SIGINT, count_signal);
  std::signal(SIGTERM, count_signal);
  std::signal(SIGUSR1, note_signal);
  if (std::signal(SIGHUP, note_signal) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // as nohup asks
  std::vector<Child> children;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::string> words = arguments;
    words.push_back(join_argument({rank, ranks, listener.port, rank == 0 ? listener.socket.descriptor() : -1,
                                   joining.descriptor(), token.descriptor()}));
    children.push_back({start(program, std::move(words)), 0});
    if (rank == 0) ::fcntl(listener.socket.descriptor(), F_SETFD, FD_CLOEXEC);
  }
  listener.socket.close();
  joining.all_started();
  Watch watch(joining, grace_seconds);
  watch.wait_for(children);
  return watch.status(children);
}

}  // namespace hstu
