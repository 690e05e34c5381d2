// metrics.memory_trim: what the pool of a rank's passes holds and uses, beside the memory of its device;
// gives back what it holds in vain.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/comm/communicator.h"
#include "hstu/tensor/context.h"

namespace hstu {

class MemoryWatch {
 public:
  // `share`: of the device's memory that the pool may hold beyond what is in use; 0: the watch is off.
  explicit MemoryWatch(double share) : share_(share) {}

  // Trims the pool if it holds too much, which waits for its stream, and gives the figures of all ranks, in
  // their order: {"in_use_mib", "held_mib", "beyond_share": of the device, before the trim, "trims": so far,
  // "device_mib", "device_free_mib": after it}. All ranks call it together. Null if the watch is off.
  Json look(const Context& compute, Communicator& comm);

 private:
  double share_;
  std::int64_t trims_ = 0;
};

}  // namespace hstu
