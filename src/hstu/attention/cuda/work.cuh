// The tiles of the kernels for Hopper: what a tile is, how it is planned, and the ring in which a block's
// tiles wait.
#pragma once

#include <cstdint>

#include "hstu/attention/cuda/row_map.h"
#include "hstu/attention/cuda/samples.h"
#include "hstu/attention/cuda/schedule.h"
#include "hstu/attention/mask.h"
#include "hstu/device/cuda/ptx.cuh"

namespace hstu::cuda {

// One tile of one head of one sample: own rows [own_begin, own_end) of the sample (queries in the forward
// pass, keys in the backward pass) against `steps` blocks of the other side. It stays in shared memory, where
// it costs no registers.
struct alignas(16) Work {
  std::int32_t begin;  // the sample's first row
  std::int32_t n, c, h;
  std::int32_t head;
  float scale;
  std::int32_t own_begin, own_end, steps;
  std::int32_t first;    // ScheduleItem::first
  std::int32_t leading;  // blocks at the beginning of the walk that come first
  BlockWalk walk;
  // For each warpgroup's 64 own rows: what all of them see, and in the forward pass an end of what any of
  // them sees, the first step that reaches below that end, and the first row.
  struct alignas(16) Group {
    std::int32_t full_lo, full_hi, end, first_step, begin;
  } groups[3];
  // The block of a step: walks go from the end of the sample to its beginning, after the `leading` blocks.
  __device__ __forceinline__ std::int32_t block(std::int32_t step) const {
    return walk[step < leading ? step : steps - 1 - (step - leading)];
  }
};
inline constexpr std::int32_t kNoWork = -1;  // as `head`: nothing is left
inline constexpr int kWorkSlots = 4;

// The ring passes tiles from the warp that hands them out to all other warps of a block. Its barriers begin
// at `full` and `empty`; tiles are counted from 0.
struct WorkRing {
  Work* slots;
  std::uint32_t full, empty;
  __device__ __forceinline__ const Work& wait(std::uint32_t turn) const {
    barrier_wait(full + 8 * (turn % kWorkSlots), turn / kWorkSlots & 1);
    return slots[turn % kWorkSlots];
  }
  __device__ __forceinline__ const Work& wait_idle(std::uint32_t turn) const {
    barrier_wait_idle(full + 8 * (turn % kWorkSlots), turn / kWorkSlots & 1);
    return slots[turn % kWorkSlots];
  }
  // For a thread of its own: calls `body(tile)` for every tile.
  template <typename Body>
  __device__ __forceinline__ void for_each(const Body& body) const {
    for (std::uint32_t turn = 0;; ++turn) {
      const Work& w = wait_idle(turn);
      if (w.head == kNoWork) return;
      body(w);
      release(turn);
    }
  }
  // Every thread (or warp) that waits calls it once.
  __device__ __forceinline__ void release(std::uint32_t turn) const {
    barrier_arrive(empty + 8 * (turn % kWorkSlots));
  }
};

__device__ __forceinline__ SampleMask mask_of(const Samples& s, const Work& w) {
  return {w.n, w.c, w.h, s.group, s.left, s.right};
}

// Fills in everything except the tile's own part.
__device__ __forceinline__ void begin_work(Work& w, const Samples& s, const ScheduleItem& item) {
  const std::int32_t n = item.length;
  const std::int32_t h = n - (s.targets != nullptr ? larger(0, smaller(n, s.targets[item.sample])) : 0);
  w.begin = item.begin;
  w.n = n, w.h = h;
  w.c = s.contexts != nullptr ? larger(0, smaller(h, s.contexts[item.sample])) : 0;
  w.scale = s.common_scale * (s.scale != nullptr ? s.scale[item.sample] : 1.0f);
  w.first = item.first;
  w.head = item.head();
}

// A warp plans a tile: lane 1 + g looks at the 64 rows of warpgroup g (chunk `chunk` of the tile), the others
// (-1) at all rows. Lane 0 writes the results of all, because lane 0 hands out the tile.
struct PlannedRows {
  std::int32_t begin, end;
  __device__ __forceinline__ PlannedRows(std::int32_t tile_begin, std::int32_t tile_end, int chunk)
      : begin(tile_begin), end(tile_end) {
    if (chunk < 0) return;
    begin = smaller(tile_begin + chunk * 64, tile_end - 1);
    end = smaller(begin + 64, tile_end);
  }
};
// `begin_of(g)` is the first row of warpgroup g.
template <int kGroups, typename BeginOf>
__device__ __forceinline__ void put_groups(Work& w, const Work::Group& own, int lane,
                                           const BeginOf& begin_of) {
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const auto of_lane = [&](std::int32_t x) { return __shfl_sync(0xffffffffu, x, 1 + g); };
    const Work::Group group{of_lane(own.full_lo), of_lane(own.full_hi), of_lane(own.end),
                            of_lane(own.first_step), begin_of(g)};
    if (lane == 0) w.groups[g] = group;
  }
}

// Called by one warp: kBackwardTile keys of a sample against its queries, 64 at a time.
__device__ __forceinline__ void plan_backward(const Samples& samples, Work& w, std::int32_t tile, int lane,
                                              std::uint32_t) {
  const std::int32_t own_begin = tile * kBackwardTile, own_end = smaller(w.n, own_begin + kBackwardTile);
  const int chunk = lane == 1 || lane == 2 ? lane - 1 : -1;
  if (lane == 0) w.own_begin = own_begin, w.own_end = own_end;
  const PlannedRows rows(own_begin, own_end, chunk);
  const Coverage seen = queries_of_keys(mask_of(samples, w), rows.begin, rows.end);
  if (lane == 0) {
    w.walk = BlockWalk(seen.any, 64);
    w.steps = w.walk.count();
    // Contexts see all history, so that every tile adds to their dQ. As the last step of all tiles they would
    // wait for the longest, which has the first turn.
    w.leading = w.steps > 0 && w.walk[0] == 0 ? smaller(w.steps, (w.c + 63) / 64) : 0;
  }
  put_groups<2>(w, {seen.full_lo, seen.full_hi, w.n, 0, 0}, lane, [](int) { return 0; });
}

// Slot and phase of a ring of kSlots buffers with a full and an empty barrier each.
template <int kSlots>
struct Ring {
  std::uint32_t slot = 0, phase = 0;
  __device__ __forceinline__ void next() {
    if (++slot == kSlots) {
      slot = 0;
      phase ^= 1;
    }
  }
};

}  // namespace hstu::cuda
