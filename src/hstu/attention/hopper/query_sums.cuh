// dQ of 64 queries is a sum over the tiles of keys that they see. These tiles take turns, in the order in
// which they were handed out: the first writes its part to memory, those between add theirs, and the last
// adds the sum in memory to its own part and rounds; at head size 256 it adds its part too and rounds later
// (query_role_256.cuh). So there is no pass that writes zeros before or rounds after, and a sum of one tile
// never goes through memory. All tiles of a head walk its queries in the same direction, contexts first, then
// from the end: a tile that began earlier is ahead, and turns rarely wait.
//
// A tile waits only for tiles handed out before it, and every turn is reported independently of what follows:
// the earliest incomplete tile can always continue. Tiles between wait for the first only, or for all before
// them if the sum has to be the same every time (in_order).
#pragma once

#include "hstu/attention/cuda/accumulator.cuh"
#include "hstu/attention/cuda/work.cuh"
#include "hstu/attention/hopper/backward.h"

namespace hstu::cuda {

enum class Turn : std::uint32_t { only, first, between, last };

// True if the sum is complete after it.
__device__ __forceinline__ bool is_final(Turn turn) {
  return turn == Turn::only || turn == Turn::last;
}

// In shared memory: one warp (grant_turns) tells the warps that add to dQ what they do in a step and when
// they may do it, and they tell another thread (report_turns) when they have. Steps are counted over all
// tiles.
struct Turns {
  static constexpr int kSlots = 8, kBytes = 36 * kSlots;
  std::uint32_t base;
  std::uint32_t rank, ranks;  // blocks that share the columns of a tile's dQ; each has turns of its own

  __device__ __forceinline__ std::uint32_t granted(std::uint32_t step) const {
    return base + 8 * (step % kSlots);
  }
  __device__ __forceinline__ std::uint32_t taken(std::uint32_t step) const {
    return granted(step) + 8 * kSlots;
  }
  __device__ __forceinline__ std::uint32_t reported(std::uint32_t step) const {
    return granted(step) + 16 * kSlots;
  }
  __device__ __forceinline__ std::uint32_t told(std::uint32_t step) const {
    return granted(step) + 24 * kSlots;
  }
  __device__ __forceinline__ std::uint32_t kind_at(std::uint32_t step) const {
    return base + 32 * kSlots + 4 * (step % kSlots);
  }
  static __device__ __forceinline__ std::uint32_t phase(std::uint32_t step) { return step / kSlots & 1; }

  // `warps` add to dQ.
  __device__ __forceinline__ void init(int warps) const {
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      barrier_init(granted(i), 1);
      barrier_init(taken(i), warps);
      barrier_init(reported(i), 1);
      barrier_init(told(i), 1);
    }
  }
  __device__ __forceinline__ void announce(std::uint32_t step, Turn turn) const {
    store_shared(kind_at(step), static_cast<std::uint32_t>(turn));
    barrier_arrive(told(step));
  }
  // What this step has to do. It may be too early to do it.
  __device__ __forceinline__ Turn announced(std::uint32_t step) const {
    barrier_wait(told(step), phase(step));
    return kind(step);
  }
  // The same, after it has been announced.
  __device__ __forceinline__ Turn kind(std::uint32_t step) const {
    return static_cast<Turn>(load_shared(kind_at(step)));
  }
  __device__ __forceinline__ void wait(std::uint32_t step) const { barrier_wait(granted(step), phase(step)); }
  __device__ __forceinline__ void wait_idle(std::uint32_t step) const {
    barrier_wait_idle(granted(step), phase(step));
  }
  // Called by a warp when all its lanes have added.
  __device__ __forceinline__ void take(std::uint32_t step, bool leader) const {
    __syncwarp();
    if (leader) barrier_arrive(taken(step));
  }
  // How many tiles have added to the 64 queries of a block of the tile's head.
  __device__ __forceinline__ std::int32_t* count(const BackwardArguments& a, const Work& w,
                                                 std::int32_t block) const {
    // Unsigned numbers need fewer registers.
    const auto head = static_cast<std::uint32_t>(w.first) * static_cast<std::uint64_t>(kBackwardTile / 64);
    return a.turns_taken + (head + static_cast<std::uint32_t>(block)) * ranks + rank;
  }
};

// Runs in one warp.
__device__ __forceinline__ void grant_turns(const BackwardArguments& a, const Turns& turns,
                                            const WorkRing& works) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::uint32_t begin = 0;
  for (std::uint32_t turn = 0;; ++turn) {
    const Work& w = works.wait_idle(turn);
    if (w.head == kNoWork) return;
#pragma unroll 1
    for (int from = 0; from < w.steps; from += 32) {
      // Each lane is responsible for one step: the tiles that its queries see.
      const int steps = smaller(32, w.steps - from);
      const std::int32_t* count = nullptr;
      std::int32_t awaited = 0;
      Turn kind = Turn::only;
      if (lane < steps) {
        const std::int32_t block = w.block(from + lane);
        count = turns.count(a, w, block);
        const BlockWalk tiles(
            keys_of_queries(mask_of(a.samples, w), block * 64, smaller(w.n, block * 64 + 64)).any,
            kBackwardTile);
        const std::int32_t before = tiles.step_of(w.own_begin / kBackwardTile);
        const bool last = before == tiles.count() - 1;
        kind = before == 0 ? (last ? Turn::only : Turn::first) : (last ? Turn::last : Turn::between);
        awaited = last || a.in_order ? before : smaller(before, 1);
      }
      // All lanes look at the same time; steps that are ready are granted in order.
      int announced = 0, granted = 0;
      while (granted < steps) {
        while (announced < steps &&
               __all_sync(0xffffffffu, barrier_done(turns.reported(begin + announced),
                                                    turns.phase(begin + announced) ^ 1))) {
          if (lane == announced) turns.announce(begin + announced, kind);
          ++announced;
        }
        if (awaited > 0 && load_acquire(count) >= awaited) awaited = 0;
        const unsigned waiting = __ballot_sync(0xffffffffu, awaited > 0);
        const int end = waiting == 0 ? announced : smaller(announced, __ffs(static_cast<int>(waiting)) - 1);
        if (lane >= granted && lane < end) barrier_arrive(turns.granted(begin + lane));
        granted = end;
      }
      begin += steps;
    }
    __syncwarp();
    if (lane == 0) works.release(opaque(turn));
  }
}

// Runs in one thread. The writes of the warps are visible to all before the count is. Turns that have ended
// by then are reported together.
__device__ __forceinline__ void report_turns(const BackwardArguments& a, const Turns& turns,
                                             const WorkRing& works) {
  std::uint32_t step = 0;
  for (std::uint32_t turn = 0;; ++turn) {
    const Work& w = works.wait_idle(turn);
    if (w.head == kNoWork) return;
    for (int i = 0; i < w.steps;) {
      std::int32_t* count = turns.count(a, w, w.block(i));
      int end = i;
      bool awaited = false;  // turns after one of these may wait for it
      do {
        barrier_wait_idle(turns.taken(step), turns.phase(step));
        const Turn kind = turns.kind(step);
        awaited |= kind == Turn::first || kind == Turn::between;
        barrier_arrive(turns.reported(step));
        ++end, ++step;
      } while (end < w.steps && barrier_done(turns.taken(step), turns.phase(step)));
      if (awaited) {
        fence_device();
        atomicAdd(count, 1);
        for (++i; i < end; ++i) atomicAdd(turns.count(a, w, w.block(i)), 1);
      }
      i = end;
    }
    works.release(turn);
  }
}

// A thread's part of 64 queries and N columns: element 4 i + e of a wgmma accumulator is at 512 i + e.
template <int N>
__device__ __forceinline__ void load_sums(float (&g)[N / 2], const float* sums) {
#pragma unroll
  for (int i = 0; i < N / 8; ++i) {
    const float4 four = __ldcg(reinterpret_cast<const float4*>(sums + i * 512));
    g[4 * i] = four.x, g[4 * i + 1] = four.y, g[4 * i + 2] = four.z, g[4 * i + 3] = four.w;
  }
}

// Adds a tile's part `g` to the sum in memory, or begins it.
template <int N>
__device__ __forceinline__ void add_sums(float* sums, Turn turn, const float (&g)[N / 2]) {
#pragma unroll
  for (int i = 0; i < N / 8; ++i) {
    if (turn == Turn::first)
      *reinterpret_cast<float4*>(sums + i * 512) =
          make_float4(g[4 * i], g[4 * i + 1], g[4 * i + 2], g[4 * i + 3]);
    else
      add_to_global(sums + i * 512, g[4 * i], g[4 * i + 1], g[4 * i + 2], g[4 * i + 3]);
  }
}

// A thread's part of dQ of 64 queries (block `block` of a tile's sample) and N columns from `column` on: two
// rows, the second 8 rows on.
template <typename T, int N>
struct QueryPart {
  const BackwardArguments& a;
  const Work& w;
  std::int32_t block;
  int column;
  std::uint32_t before[N / 4];  // the numbers before SiLU: of columns 8 (i / 2) and the next, row i % 2

  __device__ __forceinline__ int thread() const { return static_cast<int>(opaque(threadIdx.x)) % 128; }
  __device__ __forceinline__ int row() const { return block * 64 + thread() / 32 * 16 + thread() % 32 / 4; }
  __device__ __forceinline__ std::int64_t place() const {
    return (w.begin + static_cast<std::int64_t>(row())) * a.dq_row_stride + w.head * a.dq_head_stride +
           column;
  }
  __device__ __forceinline__ bool has_slopes() const { return a.q_before != nullptr && column < a.head_dim; }

  // Reads what round() multiplies by.
  __device__ __forceinline__ void request() {
    if (!has_slopes()) return;
    const T* const x = static_cast<const T*>(a.q_before) + place() + thread() % 4 * 2;
    const bool there[2] = {row() < w.n, row() + 8 < w.n};
#pragma unroll
    for (int i = 0; i < N / 4; ++i) {
      const T* const at = x + i % 2 * 8 * a.dq_row_stride + i / 2 * 8;
      before[i] = there[i % 2] ? __ldg(reinterpret_cast<const std::uint32_t*>(at)) : 0;
    }
  }
  // Stores `g`, now the sum over all tiles, times `factor`, the scale and the slope of SiLU.
  __device__ __forceinline__ void round(float (&g)[N / 2], float factor) const {
    if (has_slopes()) {
#pragma unroll
      for (int i = 0; i < N / 4; ++i) multiply_by_slope<T>(g + 2 * i, before[i]);
    }
    T* const to = static_cast<T*>(a.dq) + place() + thread() % 4 * 8;
    store_rows<T, N>(g, to, a.dq_row_stride, factor * w.scale, row() < w.n, row() + 8 < w.n,
                     a.head_dim - column);
  }
};

}  // namespace hstu::cuda
