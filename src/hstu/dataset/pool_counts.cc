#include "hstu/dataset/pool_counts.h"

#include <algorithm>
#include <array>

#include "hstu/base/checksum.h"
#include "hstu/base/npy.h"

namespace hstu {
namespace {

// put(row) for every row of the counts, in order.
template <typename Put>
void for_each_row(std::span<const std::uint8_t> action, const std::vector<ActionBit>& actions,
                  const Put& put) {
  std::vector<std::int64_t> row(actions.size());
  put(row);
  const auto events = static_cast<std::int64_t>(action.size());
  for (std::int64_t begin = 0; begin + kPoolBlock <= events; begin += kPoolBlock) {
    for (std::size_t a = 0; a < actions.size(); ++a) {
      for (std::int64_t i = 0; i < kPoolBlock; i += 64) {
        row[a] += std::popcount(events_with(action.data() + begin + i, 64, actions[a].bit));
      }
    }
    put(row);
  }
}

}  // namespace

std::vector<std::int64_t> count_pools(std::span<const std::uint8_t> action,
                                      const std::vector<ActionBit>& actions) {
  std::vector<std::int64_t> counts;
  for_each_row(action, actions, [&](const std::vector<std::int64_t>& row) {
    counts.insert(counts.end(), row.begin(), row.end());
  });
  return counts;
}

ColumnInfo write_pool_counts(const Path& folder, const std::vector<ActionBit>& actions) {
  const NpyColumn<std::uint8_t> action(folder / kActionFile);
  const std::array shape{action.size() / kPoolBlock + 1, static_cast<std::int64_t>(actions.size())};
  OutputFile file(folder / kPoolCountsFile);
  file.write(npy_header(npy_type<std::int64_t>(), shape));
  Checksum checksum;
  std::int64_t largest = 0;
  for_each_row(action.values(), actions, [&](const std::vector<std::int64_t>& row) {
    file.write(row.data(), row.size() * sizeof(std::int64_t));
    checksum.add(row.data(), row.size() * sizeof(std::int64_t));
    for (const std::int64_t count : row) largest = std::max(largest, count);
  });
  file.close();
  return {.type = npy_type<std::int64_t>(),
          .count = shape[0] * shape[1],
          .bytes = static_cast<std::int64_t>(file.size()),
          .checksum = checksum.text(),
          .min = 0,
          .max = largest};
}

}  // namespace hstu
