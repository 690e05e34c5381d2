// What the blocks of the backward pass for head size 256 (backward_sm90_256.cuh) share: their memory, each
// warpgroup's view of it, and the thread that copies.
#pragma once

#include <type_traits>

#include "hstu/attention/hopper/backward.h"
#include "hstu/attention/hopper/box.cuh"
#include "hstu/attention/hopper/hand_out.cuh"
#include "hstu/attention/hopper/query_sums.cuh"

namespace hstu::cuda {

struct Tile256 {
  static constexpr int kD = 256, kRows = 64, kKeys = 64, kThreads = 512, kColumnBytes = 64 * 128;
  static constexpr int kKeyBytes = kKeys * kD * 2, kRowBytes = kRows * kD * 2,
                       kScoreBytes = kKeys * kRows * 2;
  // Offsets in shared memory. dO has one slot, everything else has two. K and V of a tile change places with
  // each tile: the last product with V is a step before the last one with K, so the next K takes the slot of
  // V.
  static constexpr int kKeysAt = 0;
  static constexpr int kQueriesAt = kKeysAt + 2 * kKeyBytes, kGradientsAt = kQueriesAt + 2 * kRowBytes;
  static constexpr int kSlopesAt = kGradientsAt + kRowBytes;
  // A slot of scores is the block's own, then the peer's.
  static constexpr int kScoresAt = kSlopesAt + 2 * kScoreBytes, kPeerScoresAt = kScoresAt + kScoreBytes,
                       kScoreSlotBytes = 2 * kScoreBytes, kPeerKeysAt = kScoresAt + 2 * kScoreSlotBytes;
  static constexpr int kWorkAt = kPeerKeysAt + kKeyBytes / 2;
  static constexpr int kKeysFull = kWorkAt + kWorkSlots * static_cast<int>(sizeof(Work)),
                       kKeysEmpty = kKeysFull + 16, kValuesFull = kKeysEmpty + 8,
                       kValuesEmpty = kValuesFull + 8;
  static constexpr int kQueryFull = kValuesEmpty + 8, kQueryEmpty = kQueryFull + 16;
  static constexpr int kGradientFull = kQueryEmpty + 16, kGradientEmpty = kGradientFull + 16;
  static constexpr int kSlopesFull = kGradientEmpty + 16, kSlopesEmpty = kSlopesFull + 16;
  static constexpr int kScoresFull = kSlopesEmpty + 16, kScoresEmpty = kScoresFull + 16;
  static constexpr int kPeerScoresFull = kScoresEmpty + 16, kPeerScoresEmpty = kPeerScoresFull + 16;
  static constexpr int kBeforeFull = kPeerScoresEmpty + 16;
  static constexpr int kWorkFull = kBeforeFull + 16, kWorkEmpty = kWorkFull + 8 * kWorkSlots;
  static constexpr int kTicketDue = kWorkEmpty + 8 * kWorkSlots, kTicketsAt = kTicketDue + 8;
  static constexpr int kTurnsAt = kTicketsAt + Tickets<2>::kBytes;
  static constexpr int kSharedBytes = kTurnsAt + Turns::kBytes;
};
static_assert(Tile256::kSharedBytes <= 232448);

// One half of the 256 columns.
template <int kHalf>
using Half = std::integral_constant<int, kHalf>;

// One role's view of the block.
struct Role256 {
  const BackwardArguments& a;
  std::uint32_t base, rank;
  WorkRing works;
  Turns turns;
  int t;
  Ring<2> queries;                   // of Q
  std::uint32_t steps_done = 0;      // of all tiles: slot and phase of slopes and dS
  std::uint32_t gradients_done = 0;  // the phase of dO

  __device__ __forceinline__ bool leader() const { return t % 32 == 0; }
  __device__ __forceinline__ std::uint32_t slot() const { return steps_done & 1; }
  __device__ __forceinline__ std::uint32_t phase() const { return steps_done >> 1 & 1; }
  __device__ __forceinline__ void wait(int barrier, std::uint32_t phase) const {
    barrier_wait(base + barrier, phase);
  }
  __device__ __forceinline__ void wait_idle(int barrier, std::uint32_t phase) const {
    barrier_wait_idle(base + barrier, phase);
  }
  __device__ __forceinline__ void arrive(int barrier) const {
    if (leader()) barrier_arrive(base + barrier);
  }
  __device__ __forceinline__ std::uint32_t peer(int offset) const {
    return peer_address(base + offset, rank ^ 1);
  }
  // A slot with copies for both blocks is empty when both have released it.
  __device__ __forceinline__ void release_both(int barrier) const {
    if (!leader()) return;
    barrier_arrive(base + barrier);
    barrier_arrive_peer(peer(barrier));
  }
  // Calls `body` with each half of the columns of dO of a step, and releases it when its product has ended:
  // the first half of the next dO is on its way during the second product.
  template <typename Body>
  __device__ __forceinline__ void with_gradients(const Body& body) {
    const auto take = [&]<int i>(Half<i> half) {
      wait(Tile256::kGradientFull + 8 * i, gradients_done & 1);
      body(half, base + Tile256::kGradientsAt + i * (Tile256::kRowBytes / 2));
      __syncwarp();
      release_both(Tile256::kGradientEmpty + 8 * i);
    };
    take(Half<0>{});
    take(Half<1>{});
    ++gradients_done;
  }
  // Calls `body` with the rows of Q of a step, and releases them.
  template <typename Body>
  __device__ __forceinline__ void with_queries(const Body& body) {
    wait(Tile256::kQueryFull + 8 * query_slot(), queries.phase);
    body(base + Tile256::kQueriesAt + queries.slot * Tile256::kRowBytes);
    __syncwarp();
    release_both(Tile256::kQueryEmpty + 8 * query_slot());
    queries.next();
  }
  __device__ __forceinline__ const Work& work(std::uint32_t turn) const { return works.wait(turn); }
  __device__ __forceinline__ void release_work(std::uint32_t turn) const {
    __syncwarp();
    if (leader()) works.release(turn);
  }
  // Two barriers: the keys after the next are loaded when a short tile's products with V are done, which may
  // be before the query role has begun that tile.
  __device__ __forceinline__ void wait_keys(std::uint32_t turn) const {
    wait(Tile256::kKeysFull + 8 * static_cast<int>(turn & 1), turn >> 1 & 1);
  }
  // Of V and the peer's K.
  __device__ __forceinline__ void wait_values(std::uint32_t turn) const {
    wait(Tile256::kValuesFull, turn & 1);
  }
  __device__ __forceinline__ std::uint32_t keys(std::uint32_t turn) const {
    return base + Tile256::kKeysAt + (turn & 1) * Tile256::kKeyBytes;
  }
  __device__ __forceinline__ std::uint32_t values(std::uint32_t turn) const { return keys(turn + 1); }
  __device__ __forceinline__ int query_slot() const { return static_cast<int>(queries.slot); }
};

__device__ __forceinline__ void feed_256(const Role256& role) {
  using L = Tile256;
  const BackwardArguments& a = role.a;
  Ring<2> queries;
  std::uint32_t gradient_phase = 1;
  const int half = static_cast<int>(role.rank) * 2;
  for (std::uint32_t turn = 0;; ++turn) {
    const Work& w = role.works.wait_idle(turn);
    if (w.head == kNoWork) return;
    const int x = static_cast<int>(kLongestSample) - w.n, y = w.begin + w.n;
    // A box that is completely beyond its sample's end would be read from the base of the map, which is no
    // memory. Its keys are masked.
    const int own = smaller(w.own_begin + static_cast<int>(role.rank) * 64, w.n - 1);
    const int other = smaller(w.own_begin + static_cast<int>(role.rank ^ 1) * 64, w.n - 1);
    role.wait_idle(L::kValuesEmpty, (turn & 1) ^ 1);
    const std::uint32_t keys_full = role.base + L::kKeysFull + 8 * (turn & 1);
    barrier_expect(keys_full, L::kKeyBytes);
    load_box(role.keys(turn), &a.k, {x + own, 0, w.head, y}, keys_full);
    const auto next_queries = [&] {
      const std::uint32_t slot = queries.slot;
      role.wait_idle(L::kQueryEmpty + 8 * static_cast<int>(slot), queries.phase ^ 1);
      barrier_expect(role.base + L::kQueryFull + 8 * slot, L::kRowBytes);
      queries.next();
      return slot;
    };
    // Calls `load` for each half of the slot of dO, with its address and barrier.
    const auto next_gradients = [&](const auto& load) {
#pragma unroll 1
      for (int i = 0; i < 2; ++i) {
        role.wait_idle(L::kGradientEmpty + 8 * i, gradient_phase);
        barrier_expect(role.base + L::kGradientFull + 8 * i, L::kRowBytes / 2);
        load(i, role.base + L::kGradientsAt + i * (L::kRowBytes / 2), role.base + L::kGradientFull + 8 * i);
      }
      gradient_phase ^= 1;
    };
    for (int step = 0; step < w.steps; ++step) {
      if (step == w.steps - 1) barrier_arrive(role.base + L::kTicketDue);
      const Box box{x + w.block(step) * 64, half, w.head, y};
      const std::uint32_t slot = next_queries();
      load_box_to_both(role.base + L::kQueriesAt + slot * L::kRowBytes + role.rank * (L::kRowBytes / 2), &a.q,
                       box, role.base + L::kQueryFull + 8 * slot);
      if (step == 0) {
        const std::uint32_t full = role.base + L::kValuesFull;
        role.wait_idle(L::kKeysEmpty, (turn & 1) ^ 1);
        barrier_expect(full, L::kKeyBytes + L::kKeyBytes / 2);
        load_box(role.values(turn), &a.v, {x + own, 0, w.head, y}, full);
        load_box(role.base + L::kPeerKeysAt, &a.k_half, {x + other, half, w.head, y}, full);
      }
      next_gradients([&](int i, std::uint32_t to, std::uint32_t full) {
        if (i == static_cast<int>(role.rank)) load_box_to_both(to, &a.d_o, box, full);
      });
    }
    if (a.q_before != nullptr) {  // the block's K and V before SiLU, in the slots after the last step
      const Box box{x + own, 0, w.head, y};
      const std::uint32_t slot = next_queries();
      load_box(role.base + L::kQueriesAt + slot * L::kRowBytes, &a.k_before, box,
               role.base + L::kQueryFull + 8 * slot);
      next_gradients([&](int i, std::uint32_t to, std::uint32_t full) {
        load_box(to, &a.v_before, {box.x, 2 * i, box.head, box.sample_end}, full);
      });
    }
    role.works.release(turn);
  }
}

}  // namespace hstu::cuda
