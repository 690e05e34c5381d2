// What the kernels on rows share: a warp works on a row, and the lists of all tables are one launch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hstu/device/cuda/check.h"
#include "hstu/embedding/cuda/row_kernels.h"

namespace hstu::cuda {

inline constexpr int kThreads = 256, kWarps = kThreads / 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr std::size_t kMostLists = 64;  // of one launch: they travel as its argument

struct Lists {
  RowList list[kMostLists];
};

__device__ inline RowHeader* record_of(const RowTable& t, std::int64_t slot) {
  std::byte* const chunk = t.chunks[slot >> t.shift];
  return reinterpret_cast<RowHeader*>(chunk + (slot & ((std::int64_t{1} << t.shift) - 1)) * t.record_bytes);
}
__device__ inline float* values_of(RowHeader* record) {
  return reinterpret_cast<float*>(record + 1);
}

// The row of this warp; false: none.
__device__ inline bool row_of_warp(const RowList& list, std::int64_t& row) {
  row = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  return row < list.size;
}
__device__ inline int lane() {
  return static_cast<int>(threadIdx.x % 32);
}

inline unsigned blocks_of(std::int64_t n, std::int64_t per_block) {
  return static_cast<unsigned>((n + per_block - 1) / per_block);
}

// launch(blocks, lists, number of the first) for every kMostLists lists, where one has rows.
template <typename Launch>
void for_lists(std::span<const RowList> lists, std::int64_t per_block, const Launch& launch) {
  for (std::size_t first = 0; first < lists.size(); first += kMostLists) {
    const auto some = lists.subspan(first, std::min(kMostLists, lists.size() - first));
    Lists argument{};
    std::copy(some.begin(), some.end(), argument.list);
    std::int64_t longest = 0;
    for (const RowList& list : some) longest = std::max(longest, list.size);
    if (longest == 0) continue;
    launch(dim3(blocks_of(longest, per_block), static_cast<unsigned>(some.size())), argument, first);
  }
  check_cuda(cudaGetLastError(), "embedding rows");
}

}  // namespace hstu::cuda
