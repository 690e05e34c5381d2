// What a rank does while it waits for others: after a while it says for whom, where and with which stack, and
// in the end it gives up.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/comm/communicator.h"

namespace hstu {

// Of one wait; lasts as long.
class WaitWatch {
 public:
  // `comm`: the group, for its numbers and patience. `activity`: what the rank waits in.
  WaitWatch(const Communicator& comm, const Activity& activity) : comm_(comm), activity_(activity) {}

  // To be called while the rank waits, at least every second. `progress` is any number that changes whenever
  // something moves; `ranks` gives those that have not done their part. Throws LostRank when nothing has
  // moved for too long.
  void check(std::uint64_t progress, const std::function<std::vector<int>()>& ranks);

 private:
  const Communicator& comm_;
  const Activity& activity_;
  Clock::time_point moved_ = Clock::now();
  std::uint64_t progress_ = 0;
  bool warned_ = false;
};

}  // namespace hstu
