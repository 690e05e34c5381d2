// What the warpgroups of the forward pass (forward_sm90.cuh) share: the block's memory, the rows of each
// warpgroup, the plan of a tile; and the threads that copy.
#pragma once

#include <algorithm>

#include "hstu/attention/hopper/box.cuh"
#include "hstu/attention/hopper/forward.h"
#include "hstu/attention/hopper/hand_out.cuh"

namespace hstu::cuda {

template <int kD_, int kCluster_, bool kTwoGroups>
struct ForwardTile {
  static constexpr int kD = kD_, kCluster = kCluster_, kBlock = forward_keys(kD),
                       kRows = forward_queries(kD, kCluster, kTwoGroups), kGroups = kRows / kCluster / 64;
  static constexpr int kSlots = kD == 64 ? 8 : kD == 128 ? 5 : 4;  // of K or V
  // Steps that a warpgroup can skip while it still holds the last values of the tile before. The holder of
  // the oldest copy must be able to continue with the other slots, otherwise both blocks wait forever: these
  // values, then two copies a step up to the first keys that it needs.
  static constexpr int kPassed = (kSlots - 1) / 2;
  // The most steps that it skips: at least those that only later rows of a causal tile see. At head size 256
  // all: contexts see the whole history, and the other rows of their tile do not.
  static constexpr int kMostPassed =
      kD == 256 ? static_cast<int>(kLongestSample) : std::max(kPassed, (kRows - 64) / kBlock);
  // Slots of 64 queries. The next queries of every warpgroup arrive in time, except for one at head size 256:
  // the half that waits until the other's queries are released also keeps the two from using the tensor cores
  // at the same moments.
  static constexpr int kQuerySlots = kD == 256 ? 3 : 2 * kGroups;
  // Barriers that report queries, by turns. Each has one warpgroup: it waits by the parity of a phase, and
  // would pass too early if the phase before, of another warpgroup's queries, had not ended.
  static constexpr int kQueryBarriers = kQuerySlots % kGroups == 0 ? kQuerySlots : kQuerySlots * kGroups;
  static_assert(kQueryBarriers % kGroups == 0);
  // The copy engine stores O from the slot of its queries. At head size 256 the next queries would wait for
  // that, and at 64 no register is left for it: there O goes from registers to memory.
  static constexpr bool kCopiesO = kD == 128;
  static constexpr int kThreads = 128 * (kGroups + 1);
  static constexpr int kQueryBytes = 64 * kD * 2;
  static constexpr int kSlotBytes = kBlock * kD * 2;
  // Registers of a thread, which starts with 168 (three warpgroups) or 128 (four). The kernel hangs if the
  // sum is above that of the start.
  static constexpr int kRegisters = kGroups == 3 ? 160 : 232;
  static constexpr int kProducerRegisters = kGroups == 3 ? 32 : 40;
  static_assert(kGroups * kRegisters + kProducerRegisters <= (kGroups == 3 ? 4 * 128 : 3 * 168));
  // Offsets in shared memory.
  static constexpr int kSlotsAt = kQuerySlots * kQueryBytes;
  static constexpr int kWorkAt = kSlotsAt + kSlots * kSlotBytes;
  static constexpr int kBarriersAt = kWorkAt + kWorkSlots * static_cast<int>(sizeof(Work));
  static constexpr int kFull = kBarriersAt, kEmpty = kFull + 8 * kSlots;
  static constexpr int kQueryFull = kEmpty + 8 * kSlots, kQueryEmpty = kQueryFull + 8 * kQueryBarriers;
  static constexpr int kWorkFull = kQueryEmpty + 8 * kQuerySlots, kWorkEmpty = kWorkFull + 8 * kWorkSlots;
  static constexpr int kTicketDue = kWorkEmpty + 8 * kWorkSlots, kTicketsAt = kTicketDue + 8;
  static constexpr int kOutputFull = kTicketsAt + Tickets<kCluster>::kBytes;
  static constexpr int kSharedBytes = kOutputFull + 8 * kQuerySlots;
  static_assert(kSharedBytes <= 232448);
};

// The 64 rows of a tile that a warpgroup computes. Of two blocks that share a tile one has rows that see
// more: they take the second half in turns, or, at head size 256, each has rows of both halves. (The latter
// is 4 % faster there. At 128 it is 5 % slower, because the two warpgroups of a block then need different
// keys.)
template <typename Tile>
__device__ __forceinline__ int chunk_of(int group, std::uint32_t turn) {
  if constexpr (Tile::kCluster == 1) return group;
  const int rank = static_cast<int>(cluster_rank());
  if constexpr (Tile::kD == 256) return group == 0 ? rank : 3 - rank;
  return (rank ^ static_cast<int>(turn & 1)) * 2 + group;
}

// Called by one warp. The last tile of a sample ends with its last row, so that the incomplete tile is the
// first, which sees the fewest keys.
template <typename Tile>
__device__ __forceinline__ void plan_forward(const Samples& samples, Work& w, std::int32_t tile, int lane,
                                             std::uint32_t turn) {
  const int tiles = (w.n + Tile::kRows - 1) / Tile::kRows;
  const std::int32_t own_end = w.n - (tiles - 1 - tile) * Tile::kRows;
  const std::int32_t own_begin = larger(0, own_end - Tile::kRows);
  const int chunk = lane > 0 && lane <= Tile::kGroups ? chunk_of<Tile>(lane - 1, turn) : -1;
  const PlannedRows rows(own_begin, own_end, chunk);
  const Coverage seen = keys_of_queries(mask_of(samples, w), rows.begin, rows.end);
  if (lane == 0) {
    w.own_begin = own_begin, w.own_end = own_end;
    w.walk = BlockWalk(seen.any, Tile::kBlock);
    w.steps = w.walk.count();
    w.leading = 0;
  }
  __syncwarp();
  const std::int32_t end = larger(seen.any.hi1, seen.any.hi2);
  std::int32_t first_step = 0;
#pragma unroll 1
  while (first_step < smaller(w.steps - 1, Tile::kMostPassed) && w.block(first_step) * Tile::kBlock >= end)
    ++first_step;
  put_groups<Tile::kGroups>(w, {seen.full_lo, seen.full_hi, end, first_step, 0}, lane,
                            [&](int g) { return own_begin + 64 * chunk_of<Tile>(g, turn); });
}

template <typename Tile>
__device__ __forceinline__ void feed_forward(const ForwardArguments& a, std::uint32_t base,
                                             const WorkRing& works) {
  Ring<Tile::kSlots> ring;
  works.for_each([&](const Work& w) {
    barrier_arrive(base + Tile::kTicketDue);
    const int x = static_cast<int>(kLongestSample) - w.n, y = w.begin + w.n;
    const auto load = [&](const CUtensorMap& map, int step) {
      const std::uint32_t full = base + Tile::kFull + 8 * ring.slot;
      barrier_wait_idle(base + Tile::kEmpty + 8 * ring.slot, ring.phase ^ 1);
      barrier_expect(full, Tile::kSlotBytes);
      const std::uint32_t to = base + Tile::kSlotsAt + ring.slot * Tile::kSlotBytes;
      Box box{x + w.block(step) * Tile::kBlock, 0, w.head, y};
      if constexpr (Tile::kCluster == 1) {
        load_box(to, &map, box, full);
      } else {
        const auto rank = static_cast<int>(cluster_rank());
        box.column = rank * (Tile::kD / 128);
        load_box_to_both(to + rank * (Tile::kSlotBytes / 2), &map, box, full);
      }
      ring.next();
    };
    load(a.k, 0);
    for (int step = 1; step < w.steps; ++step) {
      load(a.k, step);
      load(a.v, step - 1);
    }
    load(a.v, w.steps - 1);
  });
}

// Runs in a thread of its own: queries are copied when those before them are released, and keys and values
// must not wait for that.
template <typename Tile>
__device__ __forceinline__ void feed_queries(const ForwardArguments& a, std::uint32_t base,
                                             const WorkRing& works) {
  Ring<Tile::kQuerySlots> ring;
  Ring<Tile::kQueryBarriers> barriers;
  works.for_each([&](const Work& w) {
    for (int group = 0; group < Tile::kGroups; ++group) {
      const std::uint32_t full = base + Tile::kQueryFull + 8 * barriers.slot;
      // A box that is completely beyond the sample would be read from the base of the map, which is no
      // memory.
      const int row = smaller(w.groups[group].begin, w.n - 1);
      barrier_wait_idle(base + Tile::kQueryEmpty + 8 * ring.slot, ring.phase ^ 1);
      barrier_expect(full, Tile::kQueryBytes);
      load_box(base + ring.slot * Tile::kQueryBytes, &a.q,
               {static_cast<int>(kLongestSample) - w.n + row, 0, w.head, w.begin + w.n}, full);
      ring.next();
      barriers.next();
    }
  });
}

// Runs in a thread of its own: stores O of 64 rows, then releases their slot for queries.
template <typename Tile>
__device__ __forceinline__ void store_outputs(const ForwardArguments& a, std::uint32_t base,
                                              const WorkRing& works) {
  Ring<Tile::kQuerySlots> ring;
  works.for_each([&](const Work& w) {
    for (int group = 0; group < Tile::kGroups; ++group) {
      barrier_wait_idle(base + Tile::kOutputFull + 8 * ring.slot, ring.phase);
      const int row = w.groups[group].begin;
      // The copy treats the end of the tile as the end of the sample: rows beyond it belong to another tile.
      if (row < w.own_end)
        store_box(&a.o, {static_cast<int>(kLongestSample) - w.own_end + row, 0, w.head, w.begin + w.own_end},
                  base + ring.slot * Tile::kQueryBytes);
      wait_for_stores();
      barrier_arrive(base + Tile::kQueryEmpty + 8 * ring.slot);
      ring.next();
    }
  });
}

}  // namespace hstu::cuda
