// What the Hopper kernels share: the samples as the device sees them, the ring through which one warp hands
// out tiles, masks on accumulators, and rows from accumulators to memory.
#pragma once

#include <cstdint>
#include <type_traits>

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

// Tiles on their way from the thread that hands them out to all others of a block. Its barriers begin at
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

__device__ __forceinline__ float scale_of(const Samples& s, std::int32_t sample) {
  return s.common_scale * (s.scale != nullptr ? s.scale[sample] : 1.0f);
}

// Fills in all but the tile's own part.
__device__ __forceinline__ void begin_work(Work& w, const Samples& s, const ScheduleItem& item) {
  const std::int32_t n = item.length;
  const std::int32_t h = n - (s.targets != nullptr ? larger(0, smaller(n, s.targets[item.sample])) : 0);
  w.begin = item.begin;
  w.n = n, w.h = h;
  w.c = s.contexts != nullptr ? larger(0, smaller(h, s.contexts[item.sample])) : 0;
  w.scale = scale_of(s, item.sample);
  w.first = item.first;
  w.head = item.head();
}

// Of the rows [begin, end) of a tile, lane 1 + g of the warp that plans it looks at those of warpgroup g, the
// others at all.
struct PlannedRows {
  std::int32_t begin, end;
  __device__ __forceinline__ PlannedRows(std::int32_t tile_begin, std::int32_t tile_end, int lane, int groups)
      : begin(tile_begin), end(tile_end) {
    if (lane == 0 || lane > groups) return;
    begin = smaller(tile_begin + (lane - 1) * 64, tile_end - 1);
    end = smaller(begin + 64, tile_end);
  }
};

// One warp: kBackwardTile keys of a sample against its queries, 64 at a time.
__device__ __forceinline__ void plan_backward(const Samples& samples, Work& w, std::int32_t tile, int lane) {
  const std::int32_t own_begin = tile * kBackwardTile, own_end = smaller(w.n, own_begin + kBackwardTile);
  const PlannedRows rows(own_begin, own_end, lane, 2);
  const Coverage seen = queries_of_keys(mask_of(samples, w), rows.begin, rows.end);
  if (lane == 0) {
    w.own_begin = own_begin, w.own_end = own_end;
    w.walk = BlockWalk(seen.any, 64);
    w.steps = w.walk.count();
  } else if (lane <= 2) {
    w.groups[lane - 1] = {seen.full_lo, seen.full_hi, w.n, 0};
  }
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

// The score that stands for "not seen": alpha / 2 times it is -32, where tanh is -1 to the last bit, so that
// silu and its derivative are exactly zero. (With alpha = 0 every result is zero whatever they are.)
__device__ __forceinline__ float unseen_score(float half_alpha) {
  return half_alpha == 0.0f ? 0.0f : -32.0f / half_alpha;
}

// Fills `unseen` in where row `hf` (0: a, 1: b) of a 64 x N accumulator does not see column `base` + its
// column. Element 4 j + 2 hf + e lies in column 8 j + 2 (lane % 4) + e; the last but one is in `base`
// already.
template <int N>
__device__ __forceinline__ void apply_mask(float* x, const Intervals& a, const Intervals& b,
                                           std::int32_t base, float unseen) {
  const auto shifted = [&](Intervals s) {
    s.end0 -= base, s.lo1 -= base, s.hi1 -= base, s.lo2 -= base, s.hi2 -= base;
    return s;
  };
  const Intervals rows[2] = {shifted(a), shifted(b)};
#pragma unroll
  for (int i = 0; i < N / 2; ++i) x[i] = rows[i / 2 % 2].contains(i / 4 * 8 + i % 2) ? x[i] : unseen;
}

// The same of [lo, hi) for the first row and, for the second, 8 columns on. Most masks have one bound; which,
// is the same for all threads.
template <int N>
__device__ __forceinline__ void apply_band(float* x, std::int32_t lo, std::int32_t hi, std::int32_t base,
                                           float unseen) {
  const std::int32_t low[2] = {lo - base, lo - base + 8}, high[2] = {hi - base, hi - base + 8};
  if (hi >= kUnlimited) {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) x[i] = i / 4 * 8 + i % 2 >= low[i / 2 % 2] ? x[i] : unseen;
  } else if (lo < -kUnlimited / 2) {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) x[i] = i / 4 * 8 + i % 2 < high[i / 2 % 2] ? x[i] : unseen;
  } else {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      const int column = i / 4 * 8 + i % 2;
      x[i] = column >= low[i / 2 % 2] && column < high[i / 2 % 2] ? x[i] : unseen;
    }
  }
}

// Masks a 64 x N accumulator: its first row is that of query `query` (the second 8 rows on), its first column
// that of key `base`.
template <int N>
__device__ __forceinline__ void mask_keys(float* x, const Samples& samples, const Work& w, std::int32_t query,
                                          std::int32_t base, float unseen) {
  if (w.c == 0 && w.h == w.n) {  // nothing but history; keys beyond the end need no mask
    apply_band<N>(x, query - samples.left, query + samples.right + 1, base, unseen);
  } else {
    const SampleMask mask = mask_of(samples, w);
    apply_mask<N>(x, keys_of_query(mask, smaller(query, w.n - 1)),
                  keys_of_query(mask, smaller(query + 8, w.n - 1)), base, unseen);
  }
}

// The same with keys for queries; no query sees a key beyond the end.
template <int N>
__device__ __forceinline__ void mask_queries(float* x, const Samples& samples, const Work& w,
                                             std::int32_t key, std::int32_t base, float unseen) {
  if (w.c == 0 && w.h == w.n && key + 8 < w.n) {
    apply_band<N>(x, key - samples.right, key + samples.left + 1, base, unseen);
  } else {
    const SampleMask mask = mask_of(samples, w);
    const Intervals none{0, 0, 0, 0, 0};
    apply_mask<N>(x, key < w.n ? queries_of_key(mask, key) : none,
                  key + 8 < w.n ? queries_of_key(mask, key + 8) : none, base, unseen);
  }
}

// Of 32 columns of a row in a wgmma accumulator the lane q = lane % 4 of four holds columns 8 k + 2 q and the
// next, packed in v[k]. They exchange, so that each stores 16 bytes, to `to` + 8 q (which it is given).
__device__ __forceinline__ void store_columns(std::uint32_t (&v)[4], void* to, bool stored) {
  const int q = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int k = 0; k < 4; k += 2) {
    const std::uint32_t got = __shfl_xor_sync(0xffffffffu, (q & 1) ? v[k] : v[k + 1], 1);
    if (q & 1)
      v[k] = got;
    else
      v[k + 1] = got;
  }
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const std::uint32_t got = __shfl_xor_sync(0xffffffffu, (q & 2) ? v[k] : v[k + 2], 2);
    if (q & 2)
      v[k] = got;
    else
      v[k + 2] = got;
  }
  if (stored) *static_cast<uint4*>(to) = make_uint4(v[0], v[1], v[2], v[3]);
}

// A 64 x N accumulator times `scale` to a tile in shared memory of which `to` is this warp's first row:
// columns of 64 elements with kColumnBytes from one to the next, 128 bytes a row, swizzled.
template <typename T, int N, int kColumnBytes>
__device__ __forceinline__ void store_tile(const float (&d)[N / 2], std::uint32_t to, float scale) {
  const int lane = static_cast<int>(opaque(threadIdx.x)) % 32, row = lane % 16;
#pragma unroll
  for (int i = 0; i < N / 16; ++i) {
    const auto two = [&](int e) { return pack<T>(d[8 * i + e] * scale, d[8 * i + e + 1] * scale); };
    store_matrices(to + row * 128 + i / 4 * kColumnBytes + ((i % 4 * 2 + lane / 16) ^ (row & 7)) * 16, two(0),
                   two(2), two(4), two(6));
  }
}

// A 64 x N accumulator times `scale` to rows of T. `to` is the address of this thread's first row and of
// column 8 (lane % 4); its second row is 8 rows on.
template <typename T, int N>
__device__ __forceinline__ void store_rows(const float (&d)[N / 2], T* to, std::int64_t row_stride,
                                           float scale, bool row_a, bool row_b, int columns) {
  const int q = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int hf = 0; hf < 2; ++hf) {
#pragma unroll
    for (int g = 0; g < N / 32; ++g) {
      std::uint32_t v[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int i = 4 * (4 * g + k) + 2 * hf;
        v[k] = pack<T>(d[i] * scale, d[i + 1] * scale);
      }
      store_columns(v, to + hf * 8 * row_stride + 32 * g,
                    (hf == 0 ? row_a : row_b) && 32 * g + 8 * q < columns);
    }
  }
}

}  // namespace hstu::cuda
