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
  std::int32_t head, sample;
  float scale;
  std::int32_t own_begin, own_end, steps;
  std::int32_t first;  // ScheduleItem::first
  BlockWalk walk;
  // Of each warpgroup's 64 own rows: its first step (in the forward pass, which walks backwards), and what
  // all of them see.
  struct Group {
    std::int32_t first_step, full_lo, full_hi;
  } groups[3];
};
inline constexpr std::int32_t kNoWork = -1;  // as `head`: nothing is left
inline constexpr int kWorkSlots = 4;

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
  w.sample = item.sample;
  w.first = item.first;
  w.head = item.head();
}

// kBackwardTile keys of a sample against its queries, 64 at a time.
__device__ __forceinline__ void plan_backward(const Samples& samples, Work& w, std::int32_t tile) {
  w.own_begin = tile * kBackwardTile;
  w.own_end = smaller(w.n, w.own_begin + kBackwardTile);
  w.walk = BlockWalk(queries_of_keys(mask_of(samples, w), w.own_begin, w.own_end).any, 64);
  w.steps = w.walk.count();
  for (int group = 0; group < 2; ++group) {
    const int begin = smaller(w.own_begin + group * 64, w.own_end - 1);
    const Coverage own = queries_of_keys(mask_of(samples, w), begin, smaller(begin + 64, w.own_end));
    w.groups[group] = {0, own.full_lo, own.full_hi};
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

// What a ticket stands for.
template <typename Plan>
__device__ __forceinline__ void put_work(const Samples& samples, const Schedule& schedule,
                                         std::int32_t ticket, std::int32_t items, Work& work,
                                         const Plan& plan) {
  if (ticket >= items) {
    work.head = kNoWork;
    return;
  }
  const ScheduleItem item = schedule.items[ticket];
  begin_work(work, samples, item);
  plan(work, item.tile());
}

// Runs in one thread: takes tiles until none is left, `plan(work, tile)` fills in what the kernel does with
// one. The barriers of the ring begin at `full` and `empty`. A ticket is taken when the copies of the tile
// before begin (`begun`) and no sooner: tiles that wait in a block are tiles that no other can take when the
// last ones are shared out.
template <typename Plan>
__device__ __forceinline__ void hand_out(const Samples& samples, const Schedule& schedule, Work* ring_of_work,
                                         std::uint32_t full, std::uint32_t empty, std::uint32_t begun,
                                         const Plan& plan) {
  const std::int32_t items = schedule.counters[1];
  for (std::uint32_t turn = 0;; ++turn) {
    if (turn > 0) barrier_wait(begun, (turn - 1) & 1);
    const std::int32_t ticket = atomicAdd(schedule.counters, 1);
    const std::uint32_t slot = turn % kWorkSlots;
    barrier_wait(empty + 8 * slot, (turn / kWorkSlots & 1) ^ 1);
    put_work(samples, schedule, ticket, items, ring_of_work[slot], plan);
    barrier_arrive(full + 8 * slot);
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
__device__ __forceinline__ void apply_mask(float (&x)[N / 2], const Intervals& a, const Intervals& b,
                                           std::int32_t base, float unseen) {
  const auto shifted = [&](Intervals s) {
    s.end0 -= base, s.lo1 -= base, s.hi1 -= base, s.lo2 -= base, s.hi2 -= base;
    return s;
  };
  const Intervals rows[2] = {shifted(a), shifted(b)};
#pragma unroll
  for (int hf = 0; hf < 2; ++hf) {
    const Intervals& r = rows[hf];
    if (r.end0 <= 0 && (r.lo2 >= N || r.lo2 >= r.hi2)) {  // the band alone
#pragma unroll
      for (int j = 0; j < N / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int column = 8 * j + e;
          float& value = x[4 * j + 2 * hf + e];
          value = column >= r.lo1 && column < r.hi1 ? value : unseen;
        }
      }
    } else {
#pragma unroll
      for (int j = 0; j < N / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& value = x[4 * j + 2 * hf + e];
          value = r.contains(8 * j + e) ? value : unseen;
        }
      }
    }
  }
}

// A 64 x N accumulator times `scale` to rows of T. `to` is the address of this thread's first row and of
// column 8 (lane % 4); its second row is 8 rows on. Neighbouring lanes exchange, so that each stores 16 bytes
// at a time.
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
      if ((hf == 0 ? row_a : row_b) && 32 * g + 8 * q < columns)
        *reinterpret_cast<uint4*>(to + hf * 8 * row_stride + 32 * g) = make_uint4(v[0], v[1], v[2], v[3]);
    }
  }
}

}  // namespace hstu::cuda
