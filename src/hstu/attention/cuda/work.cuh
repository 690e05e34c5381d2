// What the Hopper kernels share of their tiles: the samples as the device sees them, what a tile is, and the
// ring through which one warp hands tiles out.
#pragma once

#include <cstdint>

#include "hstu/attention/cuda/ptx.cuh"
#include "hstu/attention/cuda/samples.h"
#include "hstu/attention/cuda/schedule.h"
#include "hstu/attention/cuda/tensor_map.h"
#include "hstu/attention/mask.h"

namespace hstu::cuda {

// One tile of one head of one sample: own rows [own_begin, own_end) of the sample (queries in the forward
// pass, keys in the backward) against `steps` blocks of the other side. It stays in shared memory, where it
// costs no registers.
struct alignas(16) Work {
  std::int32_t begin;  // the sample's first row
  std::int32_t n, c, h;
  std::int32_t head;
  float scale;
  std::int32_t own_begin, own_end, steps;
  std::int32_t first;  // ScheduleItem::first
  BlockWalk walk;
  // Of each warpgroup's 64 own rows: what all of them see, and (in the forward pass) an end of what any sees
  // and the first step that reaches below it.
  struct Group {
    std::int32_t full_lo, full_hi, end, first_step;
  } groups[3];
  // The block of a step: walks go from the end of the sample to its beginning.
  __device__ __forceinline__ std::int32_t block(std::int32_t step) const { return walk[steps - 1 - step]; }
};
inline constexpr std::int32_t kNoWork = -1;  // as `head`: nothing is left
inline constexpr int kWorkSlots = 4;

// Tiles on their way from the warp that hands them out to all others of a block. Its barriers begin at
// `full` and `empty`; tiles are counted from 0.
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
  // Once of every thread (or warp) that waits.
  __device__ __forceinline__ void release(std::uint32_t turn) const {
    barrier_arrive(empty + 8 * (turn % kWorkSlots));
  }
};

__device__ __forceinline__ SampleMask mask_of(const Samples& s, const Work& w) {
  return {w.n, w.c, w.h, s.group, s.left, s.right};
}

// Fills in all but the tile's own part.
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

// A warp plans a tile: lane 1 + g looks at the rows of warpgroup g, the others at all. Lane 0 writes what all
// have found, for it is lane 0 that hands the tile on.
struct PlannedRows {
  std::int32_t begin, end;
  __device__ __forceinline__ PlannedRows(std::int32_t tile_begin, std::int32_t tile_end, int lane, int groups)
      : begin(tile_begin), end(tile_end) {
    if (lane == 0 || lane > groups) return;
    begin = smaller(tile_begin + (lane - 1) * 64, tile_end - 1);
    end = smaller(begin + 64, tile_end);
  }
};
template <int kGroups>
__device__ __forceinline__ void put_groups(Work& w, const Work::Group& own, int lane) {
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const auto of_lane = [&](std::int32_t x) { return __shfl_sync(0xffffffffu, x, 1 + g); };
    const Work::Group group{of_lane(own.full_lo), of_lane(own.full_hi), of_lane(own.end),
                            of_lane(own.first_step)};
    if (lane == 0) w.groups[g] = group;
  }
}

// One warp: kBackwardTile keys of a sample against its queries, 64 at a time.
__device__ __forceinline__ void plan_backward(const Samples& samples, Work& w, std::int32_t tile, int lane) {
  const std::int32_t own_begin = tile * kBackwardTile, own_end = smaller(w.n, own_begin + kBackwardTile);
  const PlannedRows rows(own_begin, own_end, lane, 2);
  const Coverage seen = queries_of_keys(mask_of(samples, w), rows.begin, rows.end);
  if (lane == 0) {
    w.own_begin = own_begin, w.own_end = own_end;
    w.walk = BlockWalk(seen.any, 64);
    w.steps = w.walk.count();
  }
  put_groups<2>(w, {seen.full_lo, seen.full_hi, w.n, 0}, lane);
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

// One warp: what a ticket stands for.
template <typename Plan>
__device__ __forceinline__ void put_work(const Samples& samples, const Schedule& schedule,
                                         std::int32_t ticket, std::int32_t items, Work& work,
                                         const Plan& plan) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (ticket < items) {
    const ScheduleItem item = schedule.items[ticket];
    if (lane == 0) begin_work(work, samples, item);
    __syncwarp();
    plan(work, item.tile(), lane);
  } else if (lane == 0) {
    work.head = kNoWork;
  }
  __syncwarp();
}

// Runs in one warp: takes tiles until none is left, `plan(work, tile, lane)` fills in what the kernel does
// with one; one lane's `finish(turn)` sees to what is left to do of a tile when the next has been handed out.
// The first `fixed` tickets are the blocks' own, by number (0 or gridDim.x), the others are taken when they
// are `due` and no sooner: tiles that wait in a block are tiles that no other can take when the last ones are
// shared out.
template <typename Plan, typename Finish>
__device__ __forceinline__ void hand_out(const Samples& samples, const Schedule& schedule,
                                         const WorkRing& works, std::uint32_t due, std::int32_t fixed,
                                         const Plan& plan, const Finish& finish) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int32_t items = schedule.counters[1];
  for (std::uint32_t turn = 0;; ++turn) {
    if (turn > 0) barrier_wait_idle(due, (turn - 1) & 1);
    std::int32_t ticket = static_cast<std::int32_t>(blockIdx.x);
    if (turn > 0 || fixed == 0)
      ticket = __shfl_sync(0xffffffffu, lane == 0 ? fixed + atomicAdd(schedule.counters, 1) : 0, 0);
    const std::uint32_t slot = turn % kWorkSlots;
    barrier_wait_idle(works.empty + 8 * slot, (turn / kWorkSlots & 1) ^ 1);
    put_work(samples, schedule, ticket, items, works.slots[slot], plan);
    if (lane == 0) {
      barrier_arrive(works.full + 8 * slot);
      if (turn > 0) finish(turn - 1);
    }
    __syncwarp();
    if (ticket >= items) return;
  }
}

}  // namespace hstu::cuda
