// Exchanges of messages between GPUs that are on their streams and may not be done: so that the host waits
// for them with an eye on the ranks that do not come.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "hstu/comm/communicator.h"

namespace hstu {

class PendingExchanges {
 public:
  // `comm`: the same ranks; what it does when an exchange begins names the exchange. `check` throws when the
  // exchanges have been given up, after which `is_done` says nothing.
  explicit PendingExchanges(
      const Communicator& comm, std::function<void()> check = [] {})
      : comm_(comm), check_(std::move(check)) {}

  // Exchange `number`, from 1, with these ranks has been put on its stream. `is_done` may be asked until it
  // says so.
  void add(std::int64_t number, std::vector<int> ranks, std::function<bool()> is_done);
  // Returns when those up to `number` are done. Throws what `check` throws, and LostRank when none has ended
  // for too long (Patience of the group).
  void wait(std::int64_t number);

 private:
  struct Exchange {
    std::vector<int> ranks;
    std::function<bool()> is_done;
    Activity activity;
  };
  bool is_done(const Exchange& exchange) const;
  void forget_done();

  const Communicator& comm_;
  std::function<void()> check_;
  std::deque<Exchange> pending_;  // in the order in which they take place
};

}  // namespace hstu
