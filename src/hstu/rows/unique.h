// Distinct ids of a sequence with repetitions, and sums of gradients by distinct id.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hstu {

struct UniqueIds {
  std::vector<std::int64_t> ids;    // (n) distinct ids in the order of their first appearance
  std::vector<std::int32_t> index;  // (T) input id t is ids[index[t]]
};

// Throws InternalError for more than 2^31 - 1 ids.
UniqueIds unique(std::span<const std::int64_t> ids);

// out (n, dim): row i is the sum of the gradient rows (T, dim) of every occurrence of ids[i], added in the
// order of the occurrences.
void sum_by_row(const UniqueIds& unique, const float* gradients, std::int64_t dim, float* out);

}  // namespace hstu
