#include "hstu/cli/stop_signals.h"

#include <csignal>

namespace hstu {
namespace {

std::atomic<bool> stop_requested = false;
std::atomic<int> received = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "a signal handler may only touch lock-free atomics");

void request_stop(int signal) {
  if (received == 0) received = signal;
  stop_requested = true;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  // A terminal that closes may send several, and a batch system its warning and then SIGTERM.
  std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGUSR1, SIG_IGN);
}

}  // namespace

const std::atomic<bool>& watch_stop_signals() {
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
  std::signal(SIGUSR1, request_stop);
  if (std::signal(SIGHUP, request_stop) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // as nohup asks
  return stop_requested;
}

int stop_signal() {
  return received;
}

}  // namespace hstu
