// A block's tile in the kernels for tensor cores since Ampere: its rows, the blocks of the other side that it
// walks, and what each of its warps sees of them.
#pragma once

#include "hstu/attention/cuda/accumulator.cuh"
#include "hstu/attention/cuda/work.cuh"
#include "hstu/attention/mma/instructions.cuh"
#include "hstu/attention/mma/mma.h"

namespace hstu::cuda {

// kWarps warps of kTiles x 16 own rows; kBlock rows of the other side a step. With two stages the rows of the
// next step are copied during the computation of this one. With one stage a step has two phases, and one
// buffer is filled while the other is used. A multiprocessor has registers for kBlocks such blocks.
template <int kD_, int kTiles_, int kWarps_, int kBlock_, int kStages_, int kBlocks_>
struct MmaTile {
  static constexpr int kD = kD_, kTiles = kTiles_, kWarps = kWarps_, kBlock = kBlock_, kStages = kStages_;
  static constexpr int kBlocks = kBlocks_;
  static constexpr int kThreads = 32 * kWarps, kRows = 16 * kTiles * kWarps;
  static constexpr int kOwnBytes = kRows * kD * 2, kBlockBytes = kBlock * kD * 2;
  static constexpr int kWarpBytes = 16 * kTiles * kD * 2;  // of own rows
  static constexpr int kStageBytes = 2 * kBlockBytes;
};

// In shared memory, where it costs no registers.
struct MmaWork {
  Work tile;
  Coverage warps[8];  // what each warp's rows see, and what all of them see
};

__device__ __forceinline__ Intervals seen_by(bool of_keys, const SampleMask& mask, int row) {
  return of_keys ? queries_of_key(mask, row) : keys_of_query(mask, row);
}
__device__ __forceinline__ Coverage seen_by_rows(bool of_keys, const SampleMask& mask, int begin, int end) {
  return of_keys ? queries_of_keys(mask, begin, end) : keys_of_queries(mask, begin, end);
}

// Fills in `work`. All threads of the block call it.
template <typename Tile>
__device__ __forceinline__ void plan_mma(const MmaArguments& a, const MmaSide& side, int item_index,
                                         MmaWork& work) {
  Work& w = work.tile;
  if (threadIdx.x == 0) {
    const ScheduleItem item = a.schedule.items[item_index];
    begin_work(w, a.samples, item);
    int tile = item.tile();
    // The last queries see the most keys, the first keys are seen by the most queries.
    if (side.of_keys) tile = (w.n + Tile::kRows - 1) / Tile::kRows - 1 - tile;
    w.own_begin = tile * Tile::kRows;
    w.own_end = smaller(w.n, w.own_begin + Tile::kRows);
    w.walk = BlockWalk(seen_by_rows(side.of_keys, mask_of(a.samples, w), w.own_begin, w.own_end).any,
                       Tile::kBlock);
    w.steps = w.walk.count();
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    constexpr int kOfWarp = 16 * Tile::kTiles;
    const int warp = static_cast<int>(threadIdx.x) / 32, begin = w.own_begin + warp * kOfWarp;
    work.warps[warp] = begin >= w.own_end ? Coverage{{0, 0, 0, 0, 0}, 0, 0}
                                          : seen_by_rows(side.of_keys, mask_of(a.samples, w), begin,
                                                         smaller(begin + kOfWarp, w.own_end));
  }
  __syncwarp();
}

// Copy the tile's own rows, and the rows of a step's block of the other side, to shared memory.
template <typename Tile>
__device__ __forceinline__ void load_own(std::uint32_t to, const AttentionInput& rows, const Work& w,
                                         int head_dim) {
  load_rows<Tile::kRows, Tile::kD, Tile::kThreads>(to, rows, w.begin + w.own_begin, w.head, w.n - w.own_begin,
                                                   head_dim);
}
template <typename Tile>
__device__ __forceinline__ void load_block(std::uint32_t to, const AttentionInput& rows, const Work& w,
                                           int step, int head_dim) {
  const int first = w.walk[step] * Tile::kBlock;
  load_rows<Tile::kBlock, Tile::kD, Tile::kThreads>(to, rows, w.begin + first, w.head, w.n - first, head_dim);
}

// True if some row may see something of [begin, end).
__device__ __forceinline__ bool sees_some(const Intervals& x, int begin, int end) {
  return begin < x.end0 || (begin < x.hi1 && end > x.lo1) || (begin < x.hi2 && end > x.lo2);
}

// silu(2 x) for x = half_alpha s, and twice its slope, from one tanh.
struct Activation {
  float value, slope;
  __device__ __forceinline__ Activation(float s, float half_alpha) {
    const float x = s * half_alpha, h = fast_tanh(x);
    value = fmaf(x, h, x);
    slope = fmaf(x, fmaf(-h, h, 1.0f), 1.0f + h);
  }
};

// This thread's first own row. It is computed from shared memory each time, because registers are scarce.
template <typename Tile>
__device__ __forceinline__ int first_row(const Work& w) {
  return w.own_begin + static_cast<int>(threadIdx.x) / 32 * (16 * Tile::kTiles) +
         static_cast<int>(threadIdx.x) % 32 / 4;
}

// Scores of rows that do not see each other become `unseen`. `row`: this thread's first own row.
template <int kTiles, int kHalf>
__device__ __forceinline__ void mask_scores(float (&s)[kTiles][kHalf], const MmaArguments& a, bool of_keys,
                                            const Work& w, int row, int other, float unseen) {
  const SampleMask mask = mask_of(a.samples, w);
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
    const int first = row + 16 * m;
    apply_mask<2 * kHalf>(s[m], seen_by(of_keys, mask, smaller(first, w.n - 1)),
                          seen_by(of_keys, mask, smaller(first + 8, w.n - 1)),
                          other + 2 * static_cast<int>(threadIdx.x % 4), unseen);
  }
}

// Stores the own rows of the sums times `scale`.
template <typename T, typename Tile>
__device__ __forceinline__ void store_sums(const float (&sum)[Tile::kTiles][Tile::kD / 2],
                                           const AttentionRows& out, const Work& w, int row, float scale,
                                           int head_dim) {
#pragma unroll
  for (int m = 0; m < Tile::kTiles; ++m) {
    const int first = row + 16 * m;
    T* const to = static_cast<T*>(out.data) + (w.begin + static_cast<std::int64_t>(first)) * out.row_stride +
                  w.head * out.head_stride + threadIdx.x % 4 * 8;
    store_rows<T, Tile::kD>(sum[m], to, out.row_stride, scale, first < w.own_end, first + 8 < w.own_end,
                            head_dim);
  }
}

}  // namespace hstu::cuda
