#include "hstu/batching/distinct_ids.h"

#include <algorithm>
#include <numeric>

namespace hstu {

DistinctIds::Sorted DistinctIds::sorted() const {
  std::vector<std::int32_t> order(ids_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto id_of = [&](std::int32_t number) { return ids_[static_cast<std::size_t>(number)]; };
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return id_of(a) < id_of(b); });
  Sorted result;
  result.ids.reserve(ids_.size());
  result.place.resize(ids_.size());
  for (const std::int32_t number : order) {
    result.place[static_cast<std::size_t>(number)] = static_cast<std::int32_t>(result.ids.size());
    result.ids.push_back(id_of(number));
  }
  return result;
}

void DistinctIds::grow() {
  slots_.assign(slots_.size() * 4, Slot{});
  for (std::size_t number = 0; number < ids_.size(); ++number) {
    slots_[find_slot(ids_[number])] = {ids_[number], static_cast<std::int32_t>(number)};
  }
}

}  // namespace hstu
