// Exchanges of messages between GPUs that are on their streams and may not be done: so that the host waits
// for them with an eye on the ranks that do not come.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "hstu/comm/communicator.h"

namespace hstu {

class PendingExchanges {
 public:
  // `comm`: the same ranks; what it does when an exchange begins names the exchange.
  explicit PendingExchanges(const Communicator& comm) : comm_(comm) {}

  // Exchange `number`, from 1, with these ranks has been put on its stream. `is_done` may be asked until it
  // says so.
  void add(std::int64_t number, std::vector<int> ranks, std::function<bool()> is_done);
  // Returns when those up to `number` are done. Throws LostRank when none has ended for too long (Patience of
  // the group).
  void wait(std::int64_t number);

 private:
  struct Exchange {
    std::vector<int> ranks;
    std::function<bool()> is_done;
    Activity activity;
  };
  void forget_done();

  const Communicator& comm_;
  std::deque<Exchange> pending_;  // in the order in which they take place
};

}  // namespace hstu
