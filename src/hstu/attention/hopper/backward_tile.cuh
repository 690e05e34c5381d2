// What the warpgroups of the backward pass (backward.cuh) share: the block's memory, and the threads that
// copy.
#pragma once

#include "hstu/attention/cuda/running_softmax.cuh"
#include "hstu/attention/cuda/table_gradients.cuh"
#include "hstu/attention/hopper/backward.h"
#include "hstu/attention/hopper/box.cuh"
#include "hstu/attention/hopper/query_sums.cuh"

namespace hstu::cuda {

enum class ScoreKind { silu, biased, softmax };

template <int kD_, ScoreKind kKind_>
struct BackwardTile {
  static constexpr ScoreKind kKind = kKind_;
  static constexpr int kD = kD_, kRows = 64, kKeys = 128, kThreads = 384;
  static constexpr int kKeyBytes = kKeys * kD * 2, kRowBytes = kRows * kD * 2,
                       kScoreBytes = kKeys * kRows * 2;
  static constexpr int kKeySlots = 2, kRowSlots = 2, kScoreSlots = 2;
  // Offsets in shared memory. A slot of keys is K, V.
  static constexpr int kKeysAt = 0;
  static constexpr int kQueriesAt = kKeysAt + kKeySlots * 2 * kKeyBytes;
  static constexpr int kGradientsAt = kQueriesAt + kRowSlots * kRowBytes;
  static constexpr int kScoresAt = kGradientsAt + kRowSlots * kRowBytes;
  static constexpr int kWorkAt = kScoresAt + kScoreSlots * kScoreBytes;
  static constexpr int kKeysFull = kWorkAt + kWorkSlots * static_cast<int>(sizeof(Work));
  static constexpr int kKeysEmpty = kKeysFull + 16;
  static constexpr int kQueryFull = kKeysEmpty + 16, kQueryEmpty = kQueryFull + 16;
  static constexpr int kGradientFull = kQueryEmpty + 16, kGradientEmpty = kGradientFull + 16;
  static constexpr int kScoresFull = kGradientEmpty + 16, kScoresEmpty = kScoresFull + 16;
  static constexpr int kWorkFull = kScoresEmpty + 16, kWorkEmpty = kWorkFull + 8 * kWorkSlots;
  static constexpr int kTicketDue = kWorkEmpty + 8 * kWorkSlots;
  static constexpr int kTurnsAt = kTicketDue + 8;
  static constexpr int kOutputFull = kTurnsAt + Turns::kBytes;
  // With a bias GradientMemory of each warp, with a softmax a SoftmaxBlock of each slot.
  static constexpr int kMemoryAt = (kOutputFull + 8 + 15) / 16 * 16;
  static constexpr int kStatisticsBytes = kKind == ScoreKind::softmax ? SoftmaxBlock::kBytes : 0;
  static constexpr int kMemoryBytes = kKind == ScoreKind::biased
                                          ? 8 * static_cast<int>(sizeof(GradientMemory<kRows>))
                                          : kRowSlots * kStatisticsBytes;
  static constexpr int kSharedBytes = kMemoryAt + kMemoryBytes;
  static_assert(kSharedBytes <= 232448);
};

template <typename Tile, typename Arguments>
__device__ __forceinline__ void feed_backward(const Arguments& a, std::uint32_t base, const WorkRing& works) {
  Ring<Tile::kRowSlots> ring;
  // To the next slots of Q and dO.
  const auto load_rows = [&](const CUtensorMap* first, const Box& to_queries, const CUtensorMap* second,
                             const Box& to_gradients, const float* statistics) {
    const std::uint32_t slot = 8 * ring.slot;
    barrier_wait_idle(base + Tile::kQueryEmpty + slot, ring.phase ^ 1);
    if (statistics != nullptr) {
      barrier_expect(base + Tile::kQueryFull + slot, Tile::kRowBytes + Tile::kStatisticsBytes);
      load_bytes(base + Tile::kMemoryAt + ring.slot * Tile::kStatisticsBytes, statistics,
                 Tile::kStatisticsBytes, base + Tile::kQueryFull + slot);
    } else {
      barrier_expect(base + Tile::kQueryFull + slot, Tile::kRowBytes);
    }
    load_box(base + Tile::kQueriesAt + ring.slot * Tile::kRowBytes, first, to_queries,
             base + Tile::kQueryFull + slot);
    barrier_wait_idle(base + Tile::kGradientEmpty + slot, ring.phase ^ 1);
    barrier_expect(base + Tile::kGradientFull + slot, Tile::kRowBytes);
    load_box(base + Tile::kGradientsAt + ring.slot * Tile::kRowBytes, second, to_gradients,
             base + Tile::kGradientFull + slot);
    ring.next();
  };
  Box own[2] = {};  // each warpgroup's keys, of the tile before
  for (std::uint32_t turn = 0;; ++turn) {
    const Work& w = works.wait_idle(turn);
    const int x = static_cast<int>(kLongestSample) - w.n, y = w.begin + w.n;
    if (w.head != kNoWork) {
      const std::uint32_t key_slot = turn % Tile::kKeySlots;
      const std::uint32_t keys_full = base + Tile::kKeysFull + 8 * key_slot;
      barrier_wait_idle(base + Tile::kKeysEmpty + 8 * key_slot, (turn / Tile::kKeySlots & 1) ^ 1);
      barrier_expect(keys_full, 2 * Tile::kKeyBytes);
      const std::uint32_t keys = base + Tile::kKeysAt + key_slot * 2 * Tile::kKeyBytes;
      load_box(keys, &a.k, {x + w.own_begin, 0, w.head, y}, keys_full);
      load_box(keys + Tile::kKeyBytes, &a.v, {x + w.own_begin, 0, w.head, y}, keys_full);
    }
    // What the tile before needs at its end. The copies of keys come first, as they need not wait for it.
    if (a.q_before != nullptr && turn > 0)
      for (const CUtensorMap* before : {&a.v_before, &a.k_before})
        load_rows(before, own[0], before, own[1], nullptr);
    if (w.head == kNoWork) return;
    for (int step = 0; step < w.steps; ++step) {
      if (step == w.steps - 1) barrier_arrive(base + Tile::kTicketDue);
      const Box box{x + w.block(step) * Tile::kRows, 0, w.head, y};
      const float* statistics = nullptr;
      if constexpr (Tile::kKind == ScoreKind::softmax)
        statistics = a.statistics + statistics_place(w.first, w.block(step));
      load_rows(&a.q, box, &a.d_o, box, statistics);
    }
    for (int g = 0; g < 2; ++g) own[g] = {x + smaller(w.own_begin + g * 64, w.n - 1), 0, w.head, y};
    works.release(turn);
  }
}

// Stores dK and dV of a tile in memory, from the slots of its keys and values.
template <typename Tile>
__device__ __forceinline__ void store_backward(const BackwardArguments& a, std::uint32_t base, const Work& w,
                                               std::uint32_t turn) {
  const std::uint32_t key_slot = turn % Tile::kKeySlots;
  const std::uint32_t keys = base + Tile::kKeysAt + key_slot * 2 * Tile::kKeyBytes;
  // The copy treats the end of the tile as the end of the sample: rows beyond it belong to another tile.
  const Box box{static_cast<int>(kLongestSample) - w.own_end + w.own_begin, 0, w.head, w.begin + w.own_end};
  barrier_wait_idle(base + Tile::kOutputFull, turn & 1);
  store_box(&a.dv_map, box, keys + Tile::kKeyBytes);
  store_box(&a.dk_map, box, keys);
  wait_for_stores();
  barrier_arrive(base + Tile::kKeysEmpty + 8 * key_slot);
}

}  // namespace hstu::cuda
