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

// One warp: fills in a tile, or that nothing is left.
template <typename Plan>
__device__ __forceinline__ void put_work(const Samples& samples, bool found, const ScheduleItem& item,
                                         Work& work, const Plan& plan) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (found) {
    if (lane == 0) begin_work(work, samples, item);
    __syncwarp();
    plan(work, item.tile(), lane);
  } else if (lane == 0) {
    work.head = kNoWork;
  }
  __syncwarp();
}

// What a block may begin with before the schedule is there: of the first gridDim.x tiles of the batch,
// counted sample by sample, the one of the block's number. All lanes of a warp hold it together: the first 32
// samples are looked at, one by each.
struct FirstTiles {
  std::int32_t before, tiles;  // of the sample: tiles of all heads of samples before it; of one head
  // Whether there is such a tile.
  __device__ __forceinline__ bool begin(const Samples& s, int rows, ScheduleItem& item) {
    const int lane = static_cast<int>(threadIdx.x) % 32, block = static_cast<int>(blockIdx.x);
    const std::int64_t first = lane < s.count ? s.offsets[lane] : 0;
    const auto length = static_cast<std::int32_t>(lane < s.count ? s.offsets[lane + 1] - first : 0);
    tiles = (length + rows - 1) / rows;
    std::int32_t end = tiles * s.heads;
#pragma unroll 1
    for (int step = 1; step < 32; step *= 2) {
      const std::int32_t sum = __shfl_up_sync(0xffffffffu, end, step);
      if (lane >= step) end += sum;
    }
    before = end - tiles * s.heads;
    const unsigned found = __ballot_sync(0xffffffffu, block < end);
    const int sample = __ffs(static_cast<int>(found)) - 1;
    if (sample < 0) return false;
    const auto of_sample = [&](std::int32_t x) { return __shfl_sync(0xffffffffu, x, sample); };
    const std::int32_t at = block - of_sample(before), of_head = of_sample(tiles);
    item = {sample, static_cast<std::uint32_t>(at / of_head) << kTileBits | at % of_head,
            of_sample(static_cast<std::int32_t>(first)), of_sample(length), 0};
    return true;
  }
  // Whether some block began with it.
  __device__ __forceinline__ bool has(const ScheduleItem& item) const {
    const int lane = item.sample % 32;
    const std::int32_t first = __shfl_sync(0xffffffffu, before, lane),
                       of_head = __shfl_sync(0xffffffffu, tiles, lane);
    return item.sample < 32 &&
           first + item.head() * of_head + item.tile() < static_cast<std::int32_t>(gridDim.x);
  }
};
// Every tile comes from the schedule.
struct NoFirstTiles {
  __device__ __forceinline__ bool begin(const Samples&, int, ScheduleItem&) { return false; }
  __device__ __forceinline__ bool has(const ScheduleItem&) const { return false; }
};

// Runs in one warp: takes tiles of `rows` rows until none is left, `plan(work, tile, lane)` fills in what the
// kernel does with one; one lane's `finish(turn)` sees to what is left to do of a tile when the next has been
// handed out. A ticket is taken when it is `due` and no sooner: tiles that wait in a block are tiles that no
// other can take when the last ones are shared out.
template <typename First, typename Plan, typename Finish>
__device__ __forceinline__ void hand_out(const Samples& samples, const Schedule& schedule,
                                         const WorkRing& works, std::uint32_t due, int rows, First first,
                                         const Plan& plan, const Finish& finish) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  ScheduleItem item;
  bool found = first.begin(samples, rows, item);
  for (std::uint32_t turn = 0;; ++turn) {
    const std::uint32_t slot = turn % kWorkSlots;
    if (turn > 0) barrier_wait_idle(due, (turn - 1) & 1);
    barrier_wait_idle(works.empty + 8 * slot, (turn / kWorkSlots & 1) ^ 1);
    if (turn > 0 || !found) {
      wait_for_previous_launch();  // which wrote the schedule
      do {
        const std::int32_t items = schedule.counters[1];
        const std::int32_t ticket =
            __shfl_sync(0xffffffffu, lane == 0 ? atomicAdd(schedule.counters, 1) : 0, 0);
        found = ticket < items;
        if (found) item = schedule.items[ticket];
      } while (found && first.has(item));
    }
    put_work(samples, found, item, works.slots[slot], plan);
    if (lane == 0) {
      barrier_arrive(works.full + 8 * slot);
      if (turn > 0) finish(turn - 1);
    }
    __syncwarp();
    if (!found) return;
  }
}

}  // namespace hstu::cuda
