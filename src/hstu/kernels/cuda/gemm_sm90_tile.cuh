// What the warps of the kernel of gemm_sm90.cu share: tiles, the ring of stages in shared memory.
#pragma once

#include "hstu/device/cuda/ptx.cuh"
#include "hstu/device/cuda/tensor_map.h"
#include "hstu/kernels/cuda/gemm_tile.cuh"

namespace hstu::kernels::cuda::sm90 {

using namespace hstu::cuda;
using Element = __nv_bfloat16;

inline constexpr int kBlockRows = 128, kColumns = 256, kDepth = 64, kStages = 4, kCluster = 2;
inline constexpr int kGroups = 2, kGroupThreads = 128, kGroupRows = kBlockRows / kGroups;  // that compute
inline constexpr int kWarpRows = 16;                                                       // of a group
inline constexpr int kAllThreads = (kGroups + 1) * kGroupThreads;
inline constexpr int kPairRows = kCluster * kBlockRows;

inline constexpr int kBox = 64;                                // columns of a box: 128 bytes
inline constexpr std::uint32_t kBoxBytes = kBox * kDepth * 2;  // 8 KiB
inline constexpr std::uint32_t kBytesA = kBlockRows * kDepth * 2, kBytesB = kColumns * kDepth * 2;
inline constexpr std::uint32_t kStageBytes = kBytesA + kBytesB;
inline constexpr std::uint32_t kAddedBytes = kBlockRows * kColumns / 2 * 2;  // of half the columns
inline constexpr std::uint32_t kStaged = kStages * kStageBytes;              // results on their way to memory
inline constexpr std::uint32_t kBarriers = kStaged + kGroups * 2 * kBoxBytes;
inline constexpr int kSharedBytes = kBarriers + 2 * kStages * 8 + 1024;  // aligned by the kernel

template <typename Out>
struct Arguments {
  CUtensorMap a, b, c, added, activated;  // from c on of bf16 results; added: a residual, c, or a mask
  Extents e;
  int column_tiles, row_pairs, tiles;  // tiles: pairs of blocks, of all parts
  bool adds;                           // or masks
  // A multiple of kBox: the first column of c whose silu or gelu is in `activated`; -1: none.
  int activated_from;
  Epilogue<Out> epilogue;
  float* parts;         // null: k is one part
  float* column_parts;  // (parts, row_pairs, n) sums of B's columns (gemm_sm90_sums.cuh), or null
};

// One tile of a cluster: 256 rows from `row` on, 256 columns, a part of k.
struct Tile {
  int row, column, part, k, steps;
};
template <typename Out>
__device__ Tile tile_of(const Arguments<Out>& p, int index) {
  const int rest = index / p.column_tiles, part = rest / p.row_pairs;
  const std::int64_t k = part * p.e.depth, end = min(p.e.k, k + p.e.depth);
  return {rest % p.row_pairs * kPairRows, index % p.column_tiles * kColumns, part, static_cast<int>(k),
          static_cast<int>((end - k + kDepth - 1) / kDepth)};
}

// A position in the ring of stages.
class Turn {
 public:
  __device__ void next() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
  int stage = 0;
  std::uint32_t parity = 0;
};

struct Shared {
  std::uint32_t base;
  __device__ std::uint32_t a(int stage) const { return base + stage * kStageBytes; }
  __device__ std::uint32_t b(int stage) const { return a(stage) + kBytesA; }
  __device__ std::uint32_t staged(int group, int buffer) const {
    return base + kStaged + (2 * group + buffer) * kBoxBytes;
  }
  __device__ std::uint32_t full(int stage) const { return base + kBarriers + 8 * stage; }
  __device__ std::uint32_t empty(int stage) const { return full(kStages + stage); }
};

// All warps of both blocks have to be done with a stage before either block fills it again.
__device__ inline void release(const Shared& shared, int stage) {
  const int lane = threadIdx.x % 32;
  if (lane < kCluster) barrier_arrive_peer(peer_address(shared.empty(stage), lane));
}

}  // namespace hstu::kernels::cuda::sm90
