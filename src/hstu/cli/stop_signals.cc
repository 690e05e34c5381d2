#include "hstu/cli/stop_signals.h"

#include <csignal>

namespace hstu {
namespace {

std::atomic<bool> stop_requested = false;
std::atomic<int> received = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "a signal handler may only touch lock-free atomics");

void request_stop(int signal) {
  received = signal;
  stop_requested = true;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& watch_stop_signals() {
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
  return stop_requested;
}

int stop_signal() {
  return received;
}

}  // namespace hstu
