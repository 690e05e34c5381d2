#include "hstu/comm/peer_watch.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "hstu/base/clock.h"
#include "hstu/base/terminal.h"
#include "hstu/base/thread_stacks.h"
#include "hstu/comm/transport.h"

namespace hstu {
namespace {

constexpr auto kPause = std::chrono::milliseconds(20);

}  // namespace

PeerWatch::PeerWatch(const Communicator& comm, std::function<bool()> is_idle, std::function<void()> give_up,
                     double grace_seconds)
    : comm_(comm),
      is_idle_(std::move(is_idle)),
      give_up_(std::move(give_up)),
      grace_seconds_(grace_seconds),
      thread_([this](const std::stop_token& stop) {
        name_this_thread("peers");
        watch(stop);
      }) {}

PeerWatch::~PeerWatch() {
  thread_.request_stop();
}

void PeerWatch::watch(const std::stop_token& stop) {
  for (; !stop.stop_requested(); std::this_thread::sleep_for(kPause))
    if (ended_ = comm_.ended_rank(); ended_ >= 0) break;
  // Later exchanges do not begin any more, so that what is idle stays so.
  for (const Clock::time_point start = Clock::now(); !is_idle_(); std::this_thread::sleep_for(kPause)) {
    if (stop.stop_requested()) return;
    if (seconds_since(start) < grace_seconds_) continue;
    given_up_ = true;
    report("hstu: rank {}: rank {} has ended, and an exchange between GPUs waits for it: it is given up\n",
           comm_.world_rank(comm_.rank()), comm_.world_rank(ended_));
    give_up_();
    return;
  }
}

void PeerWatch::check_all_run() const {
  if (ended_ >= 0) fail_for_ended();
}

void PeerWatch::check_not_given_up() const {
  if (given_up_) fail_for_ended();
}

void PeerWatch::fail_for_ended() const {
  throw EndedRank(fmt::format("rank {}{}: rank {} has ended", comm_.world_rank(comm_.rank()),
                              comm_.group_text(), comm_.world_rank(ended_)));
}

}  // namespace hstu
