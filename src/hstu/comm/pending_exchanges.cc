#include "hstu/comm/pending_exchanges.h"

#include <chrono>
#include <thread>
#include <utility>

#include "hstu/comm/wait_watch.h"

namespace hstu {

void PendingExchanges::add(std::int64_t number, std::vector<int> ranks, std::function<bool()> is_done) {
  forget_done();
  Activity activity = comm_.activity();
  activity.collective = "exchange between GPUs";
  activity.collectives = number;
  pending_.push_back({std::move(ranks), std::move(is_done), activity});
}

void PendingExchanges::wait(std::int64_t number) {
  constexpr auto kPauseOfWait = std::chrono::microseconds(20);  // beside a step: nothing
  for (forget_done(); !pending_.empty() && pending_.front().activity.collectives <= number; forget_done()) {
    const Exchange& oldest = pending_.front();
    WaitWatch watch(comm_, oldest.activity);
    while (!is_done(oldest)) {
      watch.check(0, [&] { return oldest.ranks; });
      std::this_thread::sleep_for(kPauseOfWait);
    }
  }
  check_();
}

// What has been given up may look as if it was done.
bool PendingExchanges::is_done(const Exchange& exchange) const {
  check_();
  return exchange.is_done();
}

void PendingExchanges::forget_done() {
  while (!pending_.empty() && is_done(pending_.front())) pending_.pop_front();
}

}  // namespace hstu
