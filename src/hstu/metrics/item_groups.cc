#include "hstu/metrics/item_groups.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "hstu/base/error.h"

namespace hstu {

ItemGroups::ItemGroups(std::span<const std::int64_t> ids, std::span<const std::int64_t> counts)
    : ids_(ids.begin(), ids.end()), groups_(ids.size(), ItemGroup::tail) {
  require(ids.size() == counts.size(), "expected a count for each of {} items, found {}", ids.size(),
          counts.size());
  std::vector<std::size_t> order(ids.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return counts[a] > counts[b]; });
  const std::int64_t events = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  std::int64_t before = 0;  // events of more frequent items
  for (const std::size_t i : order) {
    if (counts[i] == 0) break;
    groups_[i] = 3 * before < events       ? ItemGroup::head
                 : 3 * before < 2 * events ? ItemGroup::torso
                                           : ItemGroup::tail;
    before += counts[i];
  }
}

ItemGroup ItemGroups::of(std::int64_t id) const {
  const auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
  return found != ids_.end() && *found == id ? groups_[static_cast<std::size_t>(found - ids_.begin())]
                                             : ItemGroup::tail;
}

}  // namespace hstu
