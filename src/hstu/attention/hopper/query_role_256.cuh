// The query role of the backward pass for head size 256 (backward_sm90_256.cuh): dQ of 64 queries and its
// block's half of the columns in each step.
//
// A sum that this block completes is rounded one step later, by way of the slot of the step's scores: the
// copy engine brings the numbers before SiLU there and stores the results from there. Meanwhile the next step
// is multiplied, or the values of the next tile are loaded.
#pragma once

#include "hstu/attention/cuda/accumulator.cuh"
#include "hstu/attention/hopper/query_sums.cuh"
#include "hstu/attention/hopper/tile_256.cuh"
#include "hstu/device/cuda/wgmma.cuh"

namespace hstu::cuda {

template <typename T>
struct QueryRole {
  using L = Tile256;
  Role256 role;
  std::uint32_t rounded = 0;  // sums: barrier and phase of the numbers before SiLU

  // Of the block's two parts of 64 columns.
  __device__ __forceinline__ int first_part() const { return static_cast<int>(role.rank) * 2; }
  __device__ __forceinline__ std::uint32_t scores(std::uint32_t slot) const {
    return role.base + L::kScoresAt + slot * L::kScoreSlotBytes;
  }
  __device__ __forceinline__ float* sums(const Work& w, std::int32_t block) const {
    return role.a.dq_sum + sums_of_head(w.first, L::kD) + static_cast<std::int64_t>(block) * (64 * L::kD) +
           (role.rank * 8192u + static_cast<std::uint32_t>(role.t) * 4u);
  }
  __device__ __forceinline__ Box box(const Work& w, int row, int column) const {
    return {static_cast<int>(kLongestSample) - w.n + row, column, w.head, w.begin + w.n};
  }
  __device__ __forceinline__ void release_scores(std::uint32_t slot) const {
    if (!role.leader()) return;
    barrier_arrive(role.base + L::kScoresEmpty + 8 * slot);
    barrier_arrive_peer(role.peer(L::kPeerScoresEmpty + 8 * slot));
  }
  // One half of the block's columns of the tile's part of dQ.
  __device__ __forceinline__ void multiply(float (&g)[32], std::uint32_t turn, int half) const {
    const std::uint32_t own = contiguous_mn(scores(role.slot()), L::kColumnBytes);
    const std::uint32_t keys =
        contiguous_mn(role.keys(turn) + (first_part() + half) * L::kColumnBytes, L::kColumnBytes);
    const std::uint32_t other = contiguous_mn(scores(role.slot()) + L::kScoreBytes, L::kColumnBytes);
    const std::uint32_t peer_keys =
        contiguous_mn(role.base + L::kPeerKeysAt + half * L::kColumnBytes, L::kColumnBytes);
    wgmma_fence();
    Wgmma<T, 64>::template ss_first<1, 1>(g, descriptor(own), descriptor(keys));
#pragma unroll
    for (int i = 1; i < 4; ++i)
      Wgmma<T, 64>::template ss<1, 1>(g, descriptor(own + i * 128), descriptor(keys + i * 128), 1);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      Wgmma<T, 64>::template ss<1, 1>(g, descriptor(other + i * 128), descriptor(peer_keys + i * 128), 1);
    wgmma_commit();
  }

  // Adds to the sum of the tiles. The slot of the scores is not released if that completes the sum.
  // `pending`: another sum has yet to be rounded.
  __device__ __forceinline__ void add(const Work& w, std::uint32_t turn, Turn kind, std::int32_t block,
                                      bool last_step, bool pending) {
    const std::uint32_t slot = role.slot();
    float low[32], high[32];
    multiply(low, turn, 0);
    multiply(high, turn, 1);
    role.turns.wait(role.steps_done);
    wgmma_wait<1>();
    float* const to = sums(w, block);
    add_sums<64>(to, kind, low);
    wgmma_wait<0>();
    if (last_step) role.arrive(L::kKeysEmpty);
    if (kind != Turn::last) {
      release_scores(slot);
    } else {
      named_barrier(2, 128);  // the products of all warps have ended
      if (role.t == 0 && role.a.q_before != nullptr) {
        const std::uint32_t full = role.base + L::kBeforeFull + 8 * (rounded + (pending ? 1 : 0) & 1);
        barrier_expect(full, L::kScoreSlotBytes);
        load_box(scores(slot), &role.a.q_before_half, box(w, block * 64, first_part()), full);
      }
    }
    add_sums<64>(to + 4096, kind, high);
  }

  // Rounds a sum in memory. Its numbers before SiLU are in `slot`.
  __device__ __forceinline__ void round(const Work& w, std::int32_t block, std::uint32_t slot) {
    const std::uint32_t rows = scores(slot);
    float g[64];
    load_sums<128>(g, sums(w, block));
    if (role.a.q_before != nullptr) {
      role.wait(L::kBeforeFull + 8 * static_cast<int>(rounded & 1), rounded >> 1 & 1);
      multiply_by_slopes<T, 128, L::kColumnBytes>(g, rows);
    }
    ++rounded;
    store_tile<T, 128, L::kColumnBytes>(g, rows, role.a.half_alpha * w.scale);
    fence_async_proxy();
    __syncwarp();
    const int own = role.t / 32 * 16;
    if (role.leader() && block * 64 + own < w.n) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        store_box(&role.a.dq_map, box(w, block * 64 + own, first_part() + i),
                  rows + static_cast<std::uint32_t>(own * 128 + i * L::kColumnBytes));
      wait_for_stores();
    }
    release_scores(slot);
  }

  // The only tile that these queries see: nothing goes through the sums.
  __device__ __forceinline__ void round_product(const Work& w, std::uint32_t turn, std::int32_t block,
                                                bool last_step) const {
    role.turns.wait(role.steps_done);
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
      float g[32];
      QueryPart<T, 64> part{role.a, w, block, (first_part() + half) * 64};
      part.request();
      multiply(g, turn, half);
      wgmma_wait<0>();
      part.round(g, role.a.half_alpha);
    }
    if (last_step) role.arrive(L::kKeysEmpty);
    release_scores(role.slot());
  }

  __device__ __forceinline__ void run() {
    for (std::uint32_t turn = 0;; ++turn) {
      const Work& w = role.work(turn);
      if (w.head == kNoWork) return;
      role.wait_keys(turn);
      role.wait_values(turn);
      std::int32_t complete = -1;  // the block whose sum the step before completed
#pragma unroll 1
      for (int step = 0; step <= w.steps; ++step) {
        const std::int32_t before = complete;
        const std::uint32_t slot_before = role.slot() ^ 1;
        complete = -1;
        if (step < w.steps) {
          const int slot = static_cast<int>(role.slot());
          const std::int32_t block = w.block(step);
          if (role.t == 0) barrier_expect(role.base + L::kPeerScoresFull + 8 * slot, L::kScoreBytes);
          const Turn kind = role.turns.announced(role.steps_done);
          role.wait(L::kScoresFull + 8 * slot, role.phase());
          role.wait(L::kPeerScoresFull + 8 * slot, role.phase());
          const bool last_step = step == w.steps - 1;
          if (kind == Turn::only)
            round_product(w, turn, block, last_step);
          else
            add(w, turn, kind, block, last_step, before >= 0);
          if (kind == Turn::last) complete = block;
          role.turns.take(role.steps_done, role.leader());
          ++role.steps_done;
        }
        if (before >= 0) round(w, before, slot_before);
      }
      role.release_work(opaque(turn));
    }
  }
};

}  // namespace hstu::cuda
