#include "hstu/balance/shared_work.h"

#include <algorithm>
#include <numeric>

namespace hstu {
namespace {

// Adds the work of a sample that `rank` has.
void add_work(std::int64_t work, bool is_shared, std::size_t rank, int group,
              std::vector<std::int64_t>& loads) {
  if (!is_shared) {
    loads[rank] += work;
    return;
  }
  const auto ranks = static_cast<std::size_t>(group);
  const std::size_t first = rank / ranks * ranks;
  for (std::size_t r = first; r < first + ranks; ++r) loads[r] += work / group;
}

}  // namespace

Partition balanced_partition(std::span<const std::int64_t> work, int ranks, const SharedWork& shared) {
  std::vector<std::int32_t> order(work.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    if (shared.shares(a) != shared.shares(b)) return shared.shares(a);
    return work[static_cast<std::size_t>(a)] > work[static_cast<std::size_t>(b)];
  });
  const auto group = static_cast<std::size_t>(shared.group);
  std::vector<std::int64_t> loads(static_cast<std::size_t>(ranks), 0);
  std::vector<std::size_t> owned(loads.size() / group, 0);  // shared samples of each group
  Partition parts(loads.size());
  for (const std::int32_t sample : order) {
    auto rank = static_cast<std::size_t>(std::ranges::min_element(loads) - loads.begin());
    // While the shared samples are divided, the ranks of a group have the same work.
    if (shared.shares(sample)) rank = rank / group * group + owned[rank / group]++ % group;
    parts[rank].push_back(sample);
    add_work(work[static_cast<std::size_t>(sample)], shared.shares(sample), rank, shared.group, loads);
  }
  for (std::vector<std::int32_t>& part : parts) std::ranges::sort(part);
  return parts;
}

std::vector<std::int64_t> work_of_ranks(std::span<const std::int64_t> work, const Partition& partition,
                                        const SharedWork& shared) {
  std::vector<std::int64_t> loads(partition.size(), 0);
  for (std::size_t r = 0; r < partition.size(); ++r)
    for (const std::int32_t sample : partition[r])
      add_work(work[static_cast<std::size_t>(sample)], shared.shares(sample), r, shared.group, loads);
  return loads;
}

}  // namespace hstu
