// Divides samples among ranks so that the ranks' sums of work are nearly equal. Every function is a pure
// function of its arguments, so all ranks compute the same partition without a message.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hstu {

// parts[r]: the samples (indices into `work`) of rank r, ascending. A rank may have none.
using Partition = std::vector<std::vector<std::int32_t>>;

// Of any number of samples each. Takes the samples by descending work (of equal work, the lower index first)
// and gives each to the rank with the least work so far (of equal work, the lower rank). O(n log n).
Partition balanced_partition(std::span<const std::int64_t> work, int ranks);

// Of the same number of samples each, by Karmarkar and Karp's differencing with the ties of NVIDIA's
// recsys-examples, whose partitions it equals: rank 0 gets the most work. UsageError if work.size() is no
// multiple of `ranks`.
Partition equal_size_partition(std::span<const std::int64_t> work, int ranks);

// The samples [n r / ranks, n (r + 1) / ranks) for rank r.
Partition contiguous_partition(std::size_t samples, int ranks);

// The sum of each rank's work: (ranks).
std::vector<std::int64_t> work_of_ranks(std::span<const std::int64_t> work, const Partition& partition);
// The largest of these sums, divided by the mean; 1 where there is no work.
double imbalance(std::span<const std::int64_t> work_of_ranks);
double imbalance(std::span<const std::int64_t> work, const Partition& partition);

// A partition, and how even the work of the ranks is: by `parts`, and by contiguous_partition().
struct Division {
  Partition parts;
  std::vector<std::int64_t> work, work_of_slices;  // of the ranks
  double imbalance = 1, imbalance_of_slices = 1;
};

// What the divisions of a global batch, or of its pieces, came to.
struct DivisionFigures {
  std::vector<std::int64_t> work, work_of_slices;  // of the ranks; empty: nothing was divided
  double ms = 0;                                   // that the divisions took
  double exposed_ms = 0;                           // of these: training waited for the batch meanwhile

  void add(const Division& division, double took_ms);
};

}  // namespace hstu
