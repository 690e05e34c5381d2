// Forward pass on Hopper. Persistent blocks have kGroups warpgroups that compute (64 queries each) and one
// that feeds them: one of its warps hands out tiles, and one thread each copies keys and values, queries, and
// O. Two blocks of a cluster may share a tile: each copies half of the columns of keys and values for both.
// In each step of kBlock keys a warpgroup runs S = Q K^T of this step and O += P V of the step before
// together, and computes P = silu(alpha S) meanwhile, or the weights of a softmax (running_softmax.cuh).
// Steps go from the last keys to the first, so that the diagonal comes first. Keys beyond a sample's end are
// zeros in shared memory, and silu(0) = 0: they need no mask.
#pragma once

#include <type_traits>

#include "hstu/attention/cuda/accumulator.cuh"
#include "hstu/attention/cuda/hide_keys.cuh"
#include "hstu/attention/cuda/kept_pairs.cuh"
#include "hstu/attention/cuda/running_softmax.cuh"
#include "hstu/attention/cuda/score_bias.cuh"
#include "hstu/attention/hopper/fold_alpha.cuh"
#include "hstu/attention/hopper/forward_tile.cuh"
#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/wgmma.cuh"

namespace hstu::cuda {

template <typename T, typename Tile, bool kFolded, typename Arguments>
__device__ __forceinline__ void compute_forward(const Arguments& a, std::uint32_t base, const WorkRing& works,
                                                int group) {
  constexpr bool kBias = std::is_same_v<Arguments, BiasedForwardArguments>,
                 kSoftmax = std::is_base_of_v<SoftmaxForwardArguments, Arguments>,
                 kDrops = std::is_same_v<Arguments, DroppingForwardArguments>,
                 kHides = kDrops || std::is_same_v<Arguments, HidingForwardArguments>;
  constexpr int kD = Tile::kD, kBlock = Tile::kBlock;
  const int t = static_cast<int>(threadIdx.x) % 128, lane = t % 32;
  const int own_row = t / 32 * 16 + lane / 4;  // of the warpgroup's
  Ring<Tile::kSlots> ring;
  float o[kD / 2];
  std::uint32_t p[kBlock / 4];
  std::uint32_t turn = 0;   // tiles begun
  int step = 0, steps = 0;  // of the tile of the scores
  RunningSoftmax softmax;
  [[maybe_unused]] KeptOfQueries kept;  // of the scores' tile and step

  // Of the slots of queries and their barriers, by turns.
  const auto use_of = [&](std::uint32_t tile) { return tile * Tile::kGroups + group; };
  const auto query_slot_of = [&](std::uint32_t tile) { return use_of(tile) % Tile::kQuerySlots; };
  const auto query_slot = [&] { return query_slot_of(turn); };
  const auto wait_full = [&] { barrier_wait(base + Tile::kFull + 8 * ring.slot, ring.phase); };
  const auto release = [&](std::uint32_t slot) {
    if (lane != 0) return;
    const std::uint32_t empty = base + Tile::kEmpty + 8 * slot;
    barrier_arrive(empty);
    if constexpr (Tile::kCluster > 1) barrier_arrive_peer(peer_address(empty, cluster_rank() ^ 1));
  };
  const auto pass_over = [&] {
    wait_full();
    release(ring.slot);
    ring.next();
  };
  // Both return the slot that they read, which is released when the product is complete.
  const auto multiply_keys = [&](auto& s) {
    constexpr int kN = static_cast<int>(sizeof(s) / 2);
    const std::uint32_t slot = ring.slot;
    const std::uint32_t q = contiguous_k(base + query_slot() * Tile::kQueryBytes);
    const std::uint32_t k = contiguous_k(base + Tile::kSlotsAt + slot * Tile::kSlotBytes);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kD / 16; ++i) {
      const std::uint64_t qd = descriptor(q + (i / 4 * 64 * 128 + i % 4 * 32) / 16);
      const std::uint64_t kd = descriptor(k + (i / 4 * kBlock * 128 + i % 4 * 32) / 16);
      if (i == 0)
        Wgmma<T, kN>::template ss_first<0, 0>(s, qd, kd);
      else
        Wgmma<T, kN>::template ss<0, 0>(s, qd, kd, 1);
    }
    wgmma_commit();
    ring.next();
    return slot;
  };
  const auto multiply_values = [&](int add) {
    const std::uint32_t slot = ring.slot;
    const std::uint32_t v = contiguous_mn(base + Tile::kSlotsAt + slot * Tile::kSlotBytes, kBlock * 128);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kBlock / 16; ++i)
      Wgmma<T, kD>::template rs<1>(o, p + 4 * i, descriptor(v + i * 128), i > 0 ? 1 : add);
    wgmma_commit();
    ring.next();
    return slot;
  };
  const auto work = [&](std::uint32_t i) -> const Work& { return works.slots[i % kWorkSlots]; };
  const auto first_key = [&] {
    const Work& w = work(turn);
    return w.block(step) * kBlock;
  };
  // False after the last tile. Perhaps no row of this warpgroup sees the first keys of the tile.
  const auto begin_tile = [&]() -> bool {
    const Work& w = works.wait(turn);
    steps = w.steps;
    step = w.groups[group].first_step;
    return w.head != kNoWork;
  };
  const auto sees_all = [&](int key) {
    if constexpr (kDrops) {
      if (a.hidden.period > 0) return false;
    } else if constexpr (kHides) {
      return false;
    }
    const Work::Group& own = work(turn).groups[group];
    return key >= own.full_lo && key + kBlock <= own.full_hi;
  };
  const float alpha_factor = kFolded ? 1.0f : a.half_alpha;  // missing in products
  const float factor = kBias ? 1.0f : alpha_factor;          // missing in scores
  // What the bias of a step needs beside its scores: it is read while they are computed.
  const auto biased_tile = [&](int key) {
    if constexpr (kBias) {
      const Work& w = work(turn);
      return ScoreTile<false>{a.bias, w.head, w.begin, w.n, w.groups[group].begin + t / 32 * 16, key};
    }
  };
  const auto read_bias = [&](auto keys, int key) {
    if constexpr (kBias)
      return ReadBias<decltype(keys)::value, false>(biased_tile(key));
    else
      return 0;
  };
  // P in fp32 from S of `keys` keys. `is_first`: they are the first of the tile.
  const auto activate = [&](auto keys, auto is_first, auto& s, int key, bool whole, const auto& bias) {
    constexpr int kKeys = decltype(keys)::value;
    if constexpr (kSoftmax) {
      if (!whole) {
        const Work& w = work(turn);
        const int query = w.groups[group].begin + own_row, first = key + 2 * (lane % 4);
        mask_softmax_keys<kKeys>(s, a.samples, w, query, first);
        if constexpr (kHides) {
          if (!kDrops || a.hidden.period > 0) hide_keys<kKeys>(s, a.hidden, w.c, query, first);
        }
      }
      softmax.template weigh<kKeys, decltype(is_first)::value>(s, a.exponent);
      if constexpr (kDrops) kept.template drop<kKeys>(s);
      return;
    }
    if constexpr (kBias) bias.add_to(s, biased_tile(key), alpha_factor);
    if (!whole) {
      const Work& w = work(turn);
      mask_keys<kKeys>(s, a.samples, w, w.groups[group].begin + own_row, key + 2 * (lane % 4),
                       unseen_score(factor));
    }
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i) {
      const float x = s[i] * factor;
      s[i] = fmaf(x, fast_tanh(x), x);
    }
  };
  constexpr int kShortSteps = 8;
  constexpr std::integral_constant<int, kBlock> kAll;
  constexpr std::integral_constant<int, kBlock / 2> kHalf;
  const auto pack_scores = [&](const float(&s)[kBlock / 2]) {
#pragma unroll
    for (int i = 0; i < kBlock / 4; ++i) p[i] = pack<T>(s[2 * i], s[2 * i + 1]);
  };
  const auto finish_scores = [&](std::uint32_t slot) {
    release(slot);
    if (!Tile::kCopiesO && step == steps - 1 && lane == 0)
      barrier_arrive(base + Tile::kQueryEmpty + 8 * query_slot());
  };
  const auto compute_first = [&](auto keys, int key, bool whole, const auto& meanwhile) {
    constexpr int kKeys = decltype(keys)::value;
    float s[kKeys / 2];
    const std::uint32_t slot = multiply_keys(s);
    meanwhile();
    const auto bias = read_bias(keys, key);
    if constexpr (kDrops) {
      const Work& w = work(turn);
      kept.begin_rows(a.dropout, w, w.groups[group].begin + own_row);
      kept.template draw<kKeys>(a.dropout, key);
    }
    wgmma_wait<0>();
    finish_scores(slot);
    if (step > 0) pass_over();  // the values of the skipped keys
    activate(keys, std::true_type{}, s, key, whole, bias);
#pragma unroll
    for (int i = 0; i < kBlock / 4; ++i)
      p[i] = i < kKeys / 4 ? pack<T>(s[i < kKeys / 4 ? 2 * i : 0], s[i < kKeys / 4 ? 2 * i + 1 : 0]) : 0;
  };
  // The tile's first scores; `meanwhile` runs while they are computed.
  const auto first_step = [&](const auto& meanwhile) {
#pragma unroll 1
    for (int i = 1; i < 2 * step; ++i) pass_over();
    const std::uint32_t use = use_of(turn);
    barrier_wait(base + Tile::kQueryFull + 8 * (use % Tile::kQueryBarriers), use / Tile::kQueryBarriers & 1);
    if constexpr (kFolded) {
      fold_alpha(base + query_slot() * Tile::kQueryBytes, Tile::kQueryBytes, a.half_alpha);
      named_barrier(1 + group, 128);
    }
    wait_full();
    const int key = first_key();
    const bool whole = sees_all(key);
    // One warpgroup sees at most half of the block on the diagonal. (In a long tile this saves nothing and
    // brings the two warpgroups into step, which is slower.)
    if (!kBias && steps <= kShortSteps && key + kBlock / 2 >= work(turn).groups[group].end)
      compute_first(kHalf, key, whole, meanwhile);
    else
      compute_first(kAll, key, whole, meanwhile);
  };
  const auto release_work = [&](std::uint32_t finished) {
    __syncwarp();
    if (lane == 0) works.release(finished);
  };
  const auto store = [&](std::uint32_t finished) {
    const Work& w = work(finished);
    float scale = w.scale;
    if constexpr (kDrops) scale *= a.dropout.factor;
    if constexpr (kSoftmax) {
      const float2 logs = softmax.divide(o, scale, a.exponent);
      scale = 1;
      const int row = w.groups[group].begin + own_row, end = w.own_end;
      if (a.log_sums != nullptr && lane % 4 == 0) {
        float* const to = a.log_sums + (w.begin + static_cast<std::int64_t>(row)) * a.samples.heads + w.head;
        if (row < end) to[0] = logs.x;
        if (row + 8 < end) to[8 * a.samples.heads] = logs.y;
      }
    }
    if constexpr (Tile::kCopiesO) {
      release_work(finished);
      store_tile<T, kD, 64 * 128>(o, base + query_slot_of(finished) * Tile::kQueryBytes, scale);
      fence_async_proxy();
      __syncwarp();
      if (lane == 0) barrier_arrive(base + Tile::kOutputFull + 8 * query_slot_of(finished));
    } else {
      const int row = w.groups[group].begin + own_row, end = w.own_end;
      T* const to = static_cast<T*>(a.o_data) + (w.begin + static_cast<std::int64_t>(row)) * a.o_row_stride +
                    w.head * a.o_head_stride + lane % 4 * 8;
      release_work(finished);
      store_rows<T, kD>(o, to, a.o_row_stride, scale, row < end, row + 8 < end, a.head_dim);
    }
  };

  if (!begin_tile()) return;
  first_step([] {});
  while (true) {
    int add = 0;
    wait_full();
#pragma unroll 1
    for (++step; step < steps; ++step) {
      float s[kBlock / 2];
      const std::uint32_t key_slot = multiply_keys(s);
      wait_full();
      const std::uint32_t value_slot = multiply_values(add);
      add = 1;
      const int key = first_key();
      const bool whole = sees_all(key);
      const auto bias = read_bias(kAll, key);
      if constexpr (kDrops) kept.template draw<kBlock>(a.dropout, key);
      wgmma_wait<1>();
      finish_scores(key_slot);
      activate(kAll, std::false_type{}, s, key, whole, bias);
      // The wait for the next copy ends the basic block. Otherwise ptxas moves the activation behind the wait
      // for the product.
#pragma unroll
      for (int i = 0; i < kBlock / 2; ++i) asm volatile("" : "+f"(s[i])::"memory");
      wait_full();
      wgmma_wait<0>();
      release(value_slot);
      if constexpr (kSoftmax) softmax.rescale(o);
      pack_scores(s);
    }
    const std::uint32_t finished = turn++;
    const bool more = begin_tile();
    if (!more || (Tile::kMostPassed > Tile::kPassed && step > Tile::kPassed)) {
      const std::uint32_t value_slot = multiply_values(add);
      wgmma_wait<0>();
      release(value_slot);
      store(finished);
      if (!more) return;
      if constexpr (Tile::kMostPassed > Tile::kPassed) first_step([] {});
      continue;
    }
    // The last product of this tile and the first of the next run together; O is stored during the second.
    const std::uint32_t value_slot = multiply_values(add);
    first_step([&] {
      wgmma_wait<1>();
      release(value_slot);
      store(finished);
    });
  }
}

template <typename T, typename Tile, bool kFolded, typename Arguments>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    forward_sm90_kernel(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(1024) char shared[];
  const std::uint32_t base = shared_address(shared);
  const WorkRing works{reinterpret_cast<Work*>(shared + Tile::kWorkAt), base + Tile::kWorkFull,
                       base + Tile::kWorkEmpty};
  const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);
  if (threadIdx.x == 0) {
    for (const CUtensorMap* map : {&a.q, &a.k, &a.v, &a.o}) prefetch_map(map);
    for (int i = 0; i < Tile::kSlots; ++i) {
      barrier_init(base + Tile::kFull + 8 * i, 1);
      barrier_init(base + Tile::kEmpty + 8 * i, 4 * Tile::kGroups * Tile::kCluster);
    }
    for (int i = 0; i < Tile::kQueryBarriers; ++i) barrier_init(base + Tile::kQueryFull + 8 * i, 1);
    for (int i = 0; i < Tile::kQuerySlots; ++i) {
      barrier_init(base + Tile::kQueryEmpty + 8 * i, Tile::kCopiesO ? 1 : 4);
      barrier_init(base + Tile::kOutputFull + 8 * i, 4);
    }
    for (int i = 0; i < kWorkSlots; ++i) {
      barrier_init(base + Tile::kWorkFull + 8 * i, 1);
      barrier_init(base + Tile::kWorkEmpty + 8 * i, 4 * Tile::kGroups + (Tile::kCopiesO ? 3 : 2));
    }
    barrier_init(base + Tile::kTicketDue, 1);
    Tickets<Tile::kCluster>{base + Tile::kTicketsAt}.init();
    barrier_init_fence();
  }
  __syncthreads();
  if constexpr (Tile::kCluster > 1) cluster_barrier();  // the peer's barriers exist before anything is sent
  let_next_launch_begin();
  if (group == Tile::kGroups) {
    give_registers<Tile::kProducerRegisters>();
    const int t = static_cast<int>(threadIdx.x) % 128;
    if (t == 0) {
      feed_forward<Tile>(a, base, works);
    } else if (t == 64) {
      feed_queries<Tile>(a, base, works);
    } else if (Tile::kCopiesO && t == 96) {
      store_outputs<Tile>(a, base, works);
    } else if (t >= 32 && t < 64) {
      hand_out(a.samples, a.schedule, works, Tickets<Tile::kCluster>{base + Tile::kTicketsAt},
               base + Tile::kTicketDue, FirstTiles{Tile::kRows}, plan_forward<Tile>, [](std::uint32_t) {});
    }
  } else {
    take_registers<Tile::kRegisters>();
    compute_forward<T, Tile, kFolded>(a, base, works, group);
  }
  if constexpr (Tile::kCluster > 1) {
    __syncwarp();
    cluster_barrier();  // no block leaves while its peer may still send to it
  }
}

template <typename T, int kD, int kCluster, typename Arguments>
void launch_forward_sm90(const Arguments& arguments, int multiprocessors, cudaStream_t stream) {
  constexpr bool kTwoGroups = std::is_same_v<Arguments, BiasedForwardArguments> ||
                              std::is_base_of_v<HidingForwardArguments, Arguments>;
  using Tile = ForwardTile<kD, kCluster, kTwoGroups>;
  const auto launch = [&](auto folded) {
    launch_early(forward_sm90_kernel<T, Tile, decltype(folded)::value, Arguments>, arguments, multiprocessors,
                 kCluster, Tile::kThreads, Tile::kSharedBytes, stream, "attention forward");
  };
  if constexpr (std::is_base_of_v<SoftmaxForwardArguments, Arguments>)
    launch(std::false_type{});
  else
    with_folding<T, kD>(arguments.half_alpha, launch);
}

}  // namespace hstu::cuda
