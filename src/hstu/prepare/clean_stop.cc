#include "hstu/prepare/clean_stop.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include "hstu/base/files.h"
#include "hstu/base/folders.h"
#include "hstu/base/terminal.h"

namespace hstu {

void stop_cleanly_on_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals] {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) return;
    // A summary may be all that is left.
    if (all_folders_committed()) std::this_thread::sleep_for(std::chrono::seconds(2));
    StagedFolder::remove_all_at_work();
    print_note("\nstopped by {}: the unfinished output was removed\n",
               signal == SIGINT ? "SIGINT" : "SIGTERM");
    ::_exit(128 + signal);
  }).detach();
}

}  // namespace hstu
