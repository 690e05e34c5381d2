// What becomes of the sums of dQ (BackwardArguments says where they lie). While tiles are computed, two warps
// of each block that would be idle round the sums of heads whose tiles have all been added; a kernel of its
// own rounds what is left when the last tile has been taken.
#pragma once

#include "hstu/attention/cuda/backward_sm90.h"
#include "hstu/attention/cuda/work.cuh"

namespace hstu::cuda {

// The rows of an item of the schedule are rounded in parts of 16 rows, part p by worker p % workers.
inline constexpr int kRoundedRows = 16, kParts = kBackwardTile / kRoundedRows;

// Of one warp, of those 8 that add to the sums of a tile: all that it has added lies in memory.
__device__ __forceinline__ void finish_sums(const Schedule& schedule, std::int32_t first) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    __threadfence();
    atomicAdd(&schedule.items[first].finished, 1);
  }
}

// One warp: part `part` of an item, kColumns columns at a time (a divisor of 32). A lane reads two neighbours
// of a row and of the row 8 below; with the lane beside it, it writes four of one.
template <typename T, int kD, int kColumns>
__device__ __forceinline__ void round_part(const BackwardArguments& a, const ScheduleItem& item, int part) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool odd = lane % 2 == 1;
  const int tile = static_cast<int>(item.head_and_tile & ((1u << kTileBits) - 1));
  const float* const from =
      a.dq_sum + sums_of_head(item.first + tile, kD) + part / 4 * (64 * kD) + part % 4 * 128 + lane * 4;
  const int row = tile * kBackwardTile + part * kRoundedRows + lane / 4 + (odd ? 8 : 0);
  T* const to = static_cast<T*>(a.dq) + (item.begin + static_cast<std::int64_t>(row)) * a.dq_row_stride +
                static_cast<int>(item.head_and_tile >> kTileBits) * a.dq_head_stride + lane % 4 / 2 * 4;
  const float scale = a.half_alpha * scale_of(a.samples, item.sample);
  const bool stored = row < item.length;
#pragma unroll 1
  for (int column = 0; column < a.head_dim; column += kColumns) {
    float4 four[kColumns / 8];
#pragma unroll
    for (int k = 0; k < kColumns / 8; ++k)
      four[k] = __ldcg(reinterpret_cast<const float4*>(from + (column / 8 + k) * 512));
#pragma unroll
    for (int k = 0; k < kColumns / 8; ++k) {
      const std::uint32_t above = pack<T>(four[k].x * scale, four[k].y * scale),
                          below = pack<T>(four[k].z * scale, four[k].w * scale);
      const std::uint32_t got = __shfl_xor_sync(0xffffffffu, odd ? above : below, 1);
      if (stored)
        *reinterpret_cast<uint2*>(to + column + 8 * k) =
            odd ? make_uint2(got, below) : make_uint2(above, got);
    }
  }
}

// One warp, worker `worker`: parts in the order in which tiles are taken, until the last tile has been.
template <typename T, int kD, int kColumns>
__device__ __forceinline__ void round_meanwhile(const BackwardArguments& a, int worker) {
  const Schedule& schedule = a.schedule;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto is_finished = [&](const ScheduleItem& item) {
    const int tiles = (item.length + kBackwardTile - 1) / kBackwardTile;
    while (load_acquire(schedule.counters) < schedule.counters[1]) {
      if (load_acquire(&schedule.items[item.first].finished) == 8 * tiles) return true;
      __nanosleep(500);
    }
    return false;
  };
  if (worker >= a.workers) return;
  int count = 0;
  for (int p = worker; p < schedule.counters[1] * kParts; p += a.workers, ++count) {
    const ScheduleItem item = schedule.items[p / kParts];
    bool finished = lane == 0 && is_finished(item);
    finished = __shfl_sync(0xffffffffu, finished, 0);
    if (!finished) break;
    const int first_row = static_cast<int>(item.head_and_tile & ((1u << kTileBits) - 1)) * kBackwardTile +
                          p % kParts * kRoundedRows;
    if (first_row < item.length) round_part<T, kD, kColumns>(a, item, p % kParts);
  }
  if (lane == 0) schedule.rounded[worker] = count;
}

}  // namespace hstu::cuda
