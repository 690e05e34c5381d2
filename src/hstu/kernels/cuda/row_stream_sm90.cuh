// What kernels of Hopper share that compare rows with a long list of other rows: a block has 128 own rows, 64
// of each of two warpgroups, and walks over a part of the others, which one thread of a third warpgroup
// brings into a ring of slots.
#pragma once

#include <cstdint>

#include "hstu/device/cuda/tensor_map.h"
#include "hstu/device/cuda/wgmma.cuh"

namespace hstu::kernels::cuda {

inline constexpr int kStreamOwn = 128, kStreamGroups = 2, kStreamGroupRows = kStreamOwn / kStreamGroups;
inline constexpr int kStreamThreads = 128 * (kStreamGroups + 1);

// The shared memory of a block. Rows of kD values of 16 bits; kSlots slots of kRows other rows.
template <int kD, int kRows, int kSlotCount>
struct StreamLayout {
  static constexpr int kItems = kRows;
  static constexpr int kSlots = kSlotCount;
  static constexpr int kGroupBytes = kStreamGroupRows * kD * 2, kSlotBytes = kRows * kD * 2;
  static constexpr int kSlotsAt = kStreamGroups * kGroupBytes, kBarriers = kSlotsAt + kSlots * kSlotBytes;
  static constexpr int kBytes = kBarriers + 8 * (2 * kSlots + 1) + 1024;  // aligned by the kernel
  std::uint32_t base;

  __device__ std::uint32_t own(int group) const { return base + group * kGroupBytes; }
  __device__ std::uint32_t slot(int i) const { return base + kSlotsAt + i * kSlotBytes; }
  __device__ std::uint32_t full(int i) const { return base + kBarriers + 8 * i; }
  __device__ std::uint32_t empty(int i) const { return full(kSlots + i); }
  __device__ std::uint32_t own_full() const { return full(2 * kSlots); }
};

// The slot that is next, and the parity of its barriers.
template <int kSlots>
struct Turn {
  int slot = 0;
  std::uint32_t parity = 0;
  __device__ void next() {
    if (++slot == kSlots) slot = 0, parity ^= 1;
  }
};

// The steps of a block's part, `steps` at most, of `others` rows in steps of `rows`.
struct Walk {
  int first, steps;
};
__device__ inline Walk walk_of_block(int others, int rows, int steps) {
  const int all = (others + rows - 1) / rows, first = static_cast<int>(blockIdx.y) * steps;
  return {first, max(0, min(steps, all - first))};
}

// Brings `rows` rows from `row` on to shared memory `to`.
template <int kD>
__device__ void bring_rows(std::uint32_t to, const CUtensorMap& map, int row, int rows, std::uint32_t full) {
#pragma unroll
  for (int box = 0; box < kD / 64; ++box)
    hstu::cuda::load_matrix_box(to + box * rows * 128, &map, 64 * box, row, full);
}
template <int kD, typename Layout>
__device__ void bring_own_rows(const Layout& shared, const CUtensorMap& map) {
  hstu::cuda::barrier_expect(shared.own_full(), kStreamGroups * Layout::kGroupBytes);
  for (int group = 0; group < kStreamGroups; ++group)
    bring_rows<kD>(shared.own(group), map,
                   static_cast<int>(blockIdx.x) * kStreamOwn + group * kStreamGroupRows, kStreamGroupRows,
                   shared.own_full());
}

}  // namespace hstu::kernels::cuda
