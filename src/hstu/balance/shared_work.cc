#include "hstu/balance/shared_work.h"

#include <algorithm>
#include <numeric>

namespace hstu {
namespace {

// The numbers of the block of `size` that has number `i`.
std::span<std::int64_t> block_of(std::vector<std::int64_t>& numbers, std::size_t i, int size) {
  const auto n = static_cast<std::size_t>(size);
  return std::span(numbers).subspan(i / n * n, n);
}

void add_to_all(std::int64_t work, std::span<std::int64_t> loads) {
  for (std::int64_t& load : loads) load += work / std::ssize(loads);
}

std::size_t place_of_least(std::span<const std::int64_t> loads) {
  return static_cast<std::size_t>(std::ranges::min_element(loads) - loads.begin());
}

}  // namespace

Partition balanced_partition(std::span<const std::int64_t> work, int ranks, const SharedWork& shared) {
  std::vector<std::int32_t> order(work.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    if (shared.shares(a) != shared.shares(b)) return shared.shares(a);
    return work[static_cast<std::size_t>(a)] > work[static_cast<std::size_t>(b)];
  });
  std::vector<std::int64_t> of_groups(static_cast<std::size_t>(ranks / shared.tensor), 0);
  std::vector<std::int64_t> of_ranks(static_cast<std::size_t>(ranks), 0);  // of the samples that each has
  Partition parts(of_ranks.size());
  for (const std::int32_t sample : order) {
    const std::int64_t n = work[static_cast<std::size_t>(sample)];
    const int groups = shared.shares(sample) ? shared.context : 1;
    const std::size_t group = place_of_least(of_groups);
    add_to_all(n, block_of(of_groups, group, groups));
    const std::span<std::int64_t> own =
        block_of(of_ranks, group * static_cast<std::size_t>(shared.tensor), groups * shared.tensor);
    std::int64_t& least = own[place_of_least(own)];
    least += n;
    parts[static_cast<std::size_t>(&least - of_ranks.data())].push_back(sample);
  }
  for (std::vector<std::int32_t>& part : parts) std::ranges::sort(part);
  return parts;
}

std::vector<std::int64_t> work_of_ranks(std::span<const std::int64_t> work, const Partition& partition,
                                        const SharedWork& shared) {
  std::vector<std::int64_t> loads(partition.size(), 0);
  for (std::size_t r = 0; r < partition.size(); ++r)
    for (const std::int32_t sample : partition[r])
      add_to_all(work[static_cast<std::size_t>(sample)],
                 block_of(loads, r, shared.tensor * (shared.shares(sample) ? shared.context : 1)));
  return loads;
}

}  // namespace hstu
