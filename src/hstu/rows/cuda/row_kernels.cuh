// What the kernels on rows share: a warp works on a row, and the lists of all tables are one launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hstu/rows/cuda/list_launch.cuh"
#include "hstu/rows/cuda/row_kernels.h"

namespace hstu::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;

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

}  // namespace hstu::cuda
