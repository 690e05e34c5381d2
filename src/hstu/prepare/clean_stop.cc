#include "hstu/prepare/clean_stop.h"

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
    if (all_folders_committed()) return;  // a summary is all that is left
    StagedFolder::remove_all_at_work();
    print_note("\nstopped by {}: the unfinished output was removed\n",
               signal == SIGINT ? "SIGINT" : "SIGTERM");
    ::_exit(128 + signal);
  }).detach();
}

}  // namespace hstu
