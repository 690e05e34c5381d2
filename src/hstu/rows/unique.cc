#include "hstu/rows/unique.h"

#include <algorithm>
#include <limits>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/rows/row_index.h"
#include "hstu/rows/slot_index.h"

namespace hstu {

UniqueIds unique(std::span<const std::int64_t> ids) {
  require(ids.size() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
          "expected at most 2^31 - 1 ids, found {}", ids.size());
  UniqueIds result;
  result.index.resize(ids.size());
  RowIndex seen;
  for (std::size_t t = 0; t < ids.size(); ++t) {
    if (t + kPrefetchDistance < ids.size()) seen.prefetch(ids[t + kPrefetchDistance]);
    const std::int64_t place = seen.find_or_insert(ids[t]);
    if (place == static_cast<std::int64_t>(result.ids.size())) result.ids.push_back(ids[t]);
    result.index[t] = static_cast<std::int32_t>(place);
  }
  return result;
}

void sum_by_row(const UniqueIds& unique, const float* gradients, std::int64_t dim, float* out) {
  // Occurrences of each id, in order, by a counting sort.
  const std::size_t n = unique.ids.size();
  std::vector<std::int64_t> offsets(n + 1, 0);
  for (const std::int32_t place : unique.index) ++offsets[static_cast<std::size_t>(place) + 1];
  for (std::size_t i = 0; i < n; ++i) offsets[i + 1] += offsets[i];
  std::vector<std::int64_t> occurrences(unique.index.size());
  std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1);
  for (std::size_t t = 0; t < unique.index.size(); ++t)
    occurrences[static_cast<std::size_t>(next[static_cast<std::size_t>(unique.index[t])]++)] =
        static_cast<std::int64_t>(t);

  parallel_blocks(static_cast<std::int64_t>(n), 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* sum = out + i * dim;
      std::fill_n(sum, dim, 0.0f);
      for (std::int64_t o = offsets[i]; o < offsets[i + 1]; ++o) {
        const float* gradient = gradients + occurrences[o] * dim;
        for (std::int64_t c = 0; c < dim; ++c) sum[c] += gradient[c];
      }
    }
  });
}

}  // namespace hstu
