#include "hstu/batching/all_items.h"

#include <mutex>

#include "hstu/batching/distinct_ids.h"
#include "hstu/dataset/user_blocks.h"

namespace hstu {

std::vector<std::int64_t> all_items(const Dataset& dataset) {
  constexpr std::int64_t kBlockEvents = std::int64_t{1} << 18;
  std::mutex mutex;
  DistinctIds distinct;
  parallel_user_blocks(user_blocks(dataset, kBlockEvents), [&](std::int64_t first, std::int64_t end) {
    DistinctIds of_block;
    for (std::int64_t u = first; u < end; ++u)
      dataset.events_of(u).each([&](std::int64_t p) { of_block.insert(dataset.item()[p]); });
    const std::scoped_lock lock(mutex);
    for (const std::int64_t item : of_block.in_order_of_appearance()) distinct.insert(item);
  });
  std::vector<std::int64_t> items;
  items.reserve(distinct.size());
  for (const DistinctIds::Numbered& item : distinct.sorted()) items.push_back(item.id);
  return items;
}

}  // namespace hstu
