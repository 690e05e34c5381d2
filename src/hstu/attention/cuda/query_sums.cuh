// What is done to the sums of dQ (BackwardArguments says where they lie) beside adding to them: zeros before,
// rounding after. Two warps of each block that would be idle do it while tiles are computed; a kernel of its
// own rounds what is left when the last tile has been taken.
#pragma once

#include "hstu/attention/cuda/backward_sm90.h"
#include "hstu/attention/cuda/work.cuh"

namespace hstu::cuda {

// The rows of an item of the schedule are rounded in parts of 16 rows, part p by worker p % workers.
inline constexpr int kRoundedRows = 16, kParts = kBackwardTile / kRoundedRows;

__device__ __forceinline__ int backward_tiles(int length) {
  return (length + kBackwardTile - 1) / kBackwardTile;
}

// Of one warp, of those 8 that add to the sums of a tile: all that it has added lies in memory.
__device__ __forceinline__ void finish_sums(const Schedule& schedule, std::int32_t first) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    __threadfence();
    atomicAdd(&schedule.items[first].finished, 1);
  }
}

// Where the sums of part `part` of an item lie.
template <int kD>
__device__ __forceinline__ const float* sums_of_part(const BackwardArguments& a, const ScheduleItem& item,
                                                     int part) {
  return a.dq_sum + sums_of_head(item.first + item.tile(), kD) + part / 4 * (64 * kD) + part % 4 * 128;
}

// One warp: part `part` of an item, kColumns columns at a time (a divisor of 32). A lane reads two neighbours
// of a row and of the row 8 below; with the lane beside it, it writes four of one.
template <typename T, int kD, int kColumns>
__device__ __forceinline__ void round_part(const BackwardArguments& a, const ScheduleItem& item, int part) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool odd = lane % 2 == 1;
  const int tile = item.tile();
  const float* const from = sums_of_part<kD>(a, item, part) + lane * 4;
  const int row = tile * kBackwardTile + part * kRoundedRows + lane / 4 + (odd ? 8 : 0);
  T* const to = static_cast<T*>(a.dq) + (item.begin + static_cast<std::int64_t>(row)) * a.dq_row_stride +
                item.head() * a.dq_head_stride + lane % 4 / 2 * 4;
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

// In the thread that starts copies, before anything is added to the sums of a head: those that were not zeros
// when the kernel began have become so.
__device__ __forceinline__ void wait_for_zeros(const BackwardArguments& a, const Work& w) {
  const int tiles = backward_tiles(w.n), expected = smaller(tiles, w.first + tiles - a.zeros_before);
  if (expected <= 0) return;
  while (load_acquire(&a.schedule.items[w.first].zeroed) < expected) __nanosleep(100);
}

// One warp: the sums of an item's rows become zeros.
template <int kD>
__device__ __forceinline__ void zero_sums(const BackwardArguments& a, const ScheduleItem& item) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (item.first + item.tile() < a.zeros_before) return;
  float4* const to = reinterpret_cast<float4*>(a.dq_sum + sums_of_head(item.first + item.tile(), kD)) + lane;
#pragma unroll 8
  for (int i = 0; i < kBackwardTile * kD / 4; i += 32) to[i] = make_float4(0, 0, 0, 0);
  __syncwarp();
  if (lane == 0) {
    __threadfence();
    atomicAdd(&a.schedule.items[item.first].zeroed, 1);
  }
}

// One warp, worker `worker`, until the last tile has been taken: zeros a little ahead of the tiles, so that
// they are in the cache when they are added to, and the rounding of finished heads behind them, both in the
// order in which tiles are taken.
template <typename T, int kD, int kColumns>
__device__ __forceinline__ void prepare_and_round(const BackwardArguments& a, int worker) {
  constexpr int kAhead = 512, kPatience = 50;
  const Schedule& schedule = a.schedule;
  if (worker >= a.workers) return;
  const int items = schedule.counters[1], lane = static_cast<int>(threadIdx.x) % 32;
  // Zeros are taken by tickets, since tiles wait for them: a block that does not run yet must not hold any,
  // and a warp that holds one does not leave, nor wait for ever.
  const auto take = [&] {
    return __shfl_sync(0xffffffffu, lane == 0 ? atomicAdd(schedule.counters + 2, 1) : 0, 0);
  };
  int zero = take(), part = worker, idle = 0;
  while (true) {
    const int taken = __shfl_sync(0xffffffffu, load_acquire(schedule.counters), 0);
    if (zero < items && (zero < taken + kAhead || idle > kPatience)) {
      zero_sums<kD>(a, schedule.items[zero]);
      zero = take();
      idle = 0;
      continue;
    }
    if (taken >= items) break;
    if (part < items * kParts) {
      const ScheduleItem item = schedule.items[part / kParts];
      const int finished = __shfl_sync(0xffffffffu, load_acquire(&schedule.items[item.first].finished), 0);
      if (finished == 8 * backward_tiles(item.length)) {
        if (item.tile() * kBackwardTile + part % kParts * kRoundedRows < item.length)
          round_part<T, kD, kColumns>(a, item, part % kParts);
        part += a.workers;
        idle = 0;
        continue;
      }
    }
    __nanosleep(500);
    ++idle;
  }
  if (lane == 0) schedule.rounded[worker] = part / a.workers;
}

}  // namespace hstu::cuda
