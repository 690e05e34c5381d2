// Leaves out of a request the items that its user has had.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/dataset/dataset.h"

namespace hstu {

class UnseenItems {
 public:
  // The items of events with one of these actions; of all events if there are none. Throws UsageError naming
  // an action that the dataset does not have or that is named twice. The dataset must outlive it.
  UnseenItems(const Dataset& dataset, const std::vector<std::string>& actions);

  // The items of such events of `events`, ascending, each once. Valid until the next call.
  const std::vector<std::int64_t>& seen(const UserEvents& events);
  // The indices of those of `items` that are in no such event of `events`, ascending. Valid
  // until the next call.
  const std::vector<std::size_t>& others(const std::vector<std::int64_t>& items, const UserEvents& events);

 private:
  const Dataset& dataset_;
  std::uint8_t bits_ = 0;  // 0: every event
  std::vector<std::int64_t> seen_;
  std::vector<std::size_t> others_;
};

}  // namespace hstu
