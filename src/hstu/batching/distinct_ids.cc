#include "hstu/batching/distinct_ids.h"

#include <algorithm>
#include <array>

namespace hstu {

void DistinctIds::insert(std::span<const std::int64_t> ids, std::int32_t* numbers) {
  constexpr std::size_t kAhead = 32;  // prefetched probes
  std::array<std::size_t, kAhead> home;
  for (std::size_t begin = 0; begin < ids.size(); begin += kAhead) {
    const auto part = ids.subspan(begin, std::min(kAhead, ids.size() - begin));
    reserve(part.size());
    for (std::size_t i = 0; i < part.size(); ++i) {
      home[i] = home_of(part[i]);
      __builtin_prefetch(&slots_[home[i]], 1);
    }
    for (std::size_t i = 0; i < part.size(); ++i) numbers[begin + i] = insert_at(home[i], part[i]);
  }
}

std::span<const DistinctIds::Numbered> DistinctIds::sorted() {
  sorted_.resize(ids_.size());
  for (std::size_t n = 0; n < ids_.size(); ++n) sorted_[n] = {ids_[n], static_cast<std::int32_t>(n)};
  std::sort(sorted_.begin(), sorted_.end(), [](const Numbered& a, const Numbered& b) { return a.id < b.id; });
  return sorted_;
}

void DistinctIds::clear() {
  std::fill(slots_.begin(), slots_.end(), Slot{});
  ids_.clear();
}

void DistinctIds::grow() {
  slots_.assign(slots_.size() * 4, Slot{});
  for (std::size_t number = 0; number < ids_.size(); ++number) {
    slots_[find_slot(home_of(ids_[number]), ids_[number])] = {ids_[number],
                                                              static_cast<std::int32_t>(number)};
  }
}

}  // namespace hstu
