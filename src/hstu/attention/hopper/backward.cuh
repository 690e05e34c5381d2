// Backward pass on Hopper, head sizes up to 128. A persistent block takes 128 keys (64 for each of two
// warpgroups) and walks the queries that see them, 64 at a time. Scores are transposed, S^T = K Q^T, so that
// the products for dV and dK read P^T and dS^T from registers; only dS goes through shared memory, for dQ.
// The dQ of a step is computed one step later, together with dV and dK, and added to the sums of other blocks
// (query_sums.cuh). Queries beyond a sample's end are zeros, which add nothing: they need no mask.
//
// With h = tanh(t) and t = alpha S / 2:
//
//   P = t (1 + h)
//   2 silu'(alpha S) = (1 + h) + t (1 - h^2)
//
// The factors alpha / 2 and `scale` are applied once, to the sums. Of a softmax, with the logarithm of a
// query's sum of weights and the mean of its dP by the weights (SoftmaxBlock):
//
//   P = e^(alpha S - log sum)
//   dS = P (dP - mean)                          the factor is alpha
//
// With dropout dP of a pair is multiplied by its factor, or 0, and so is P for dV after dS is computed.
#pragma once

#include <type_traits>

#include "hstu/attention/cuda/accumulator.cuh"
#include "hstu/attention/cuda/hide_keys.cuh"
#include "hstu/attention/cuda/kept_pairs.cuh"
#include "hstu/attention/cuda/running_softmax.cuh"
#include "hstu/attention/cuda/table_gradients.cuh"
#include "hstu/attention/hopper/backward_tile.cuh"
#include "hstu/attention/hopper/fold_alpha.cuh"
#include "hstu/attention/hopper/hand_out.cuh"
#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/wgmma.cuh"

namespace hstu::cuda {

template <typename T, typename Tile, bool kFolded, typename Arguments>
__device__ __forceinline__ void compute_backward(const Arguments& a, std::uint32_t base,
                                                 const WorkRing& works, const Turns& turns, int group) {
  constexpr bool kBias = Tile::kKind == ScoreKind::biased, kSoftmax = Tile::kKind == ScoreKind::softmax,
                 kDrops = std::is_same_v<Arguments, DroppingBackwardArguments>;
  constexpr int kD = Tile::kD, kOwn = kD / 2;  // columns of dQ of one warpgroup
  const int t = static_cast<int>(threadIdx.x) % 128, lane = t % 32, warp = t / 32;
  // The key row and block of 8 queries that stmatrix of this lane writes in dS^T (128 keys x 64 queries,
  // swizzled).
  const int score_row = group * 64 + warp * 16 + (lane >> 3 & 1) * 8 + (lane & 7), score_block = lane >> 4;
  Ring<Tile::kRowSlots> ring;
  std::uint32_t scores_done = 0;  // steps whose dS has been written
  float dk[kD / 2], dv[kD / 2];
  const auto factor = [&] { return kFolded ? 1.0f : a.half_alpha; };  // missing in scores, and so in dQ
  const auto score_factor = [&] { return kBias ? 1.0f : factor(); };  // the same with the bias added

  const auto arrive = [&](std::uint32_t barrier) {
    if (lane == 0) barrier_arrive(base + barrier);
  };
  const auto memory = [&]() -> GradientMemory<Tile::kRows>& {
    extern __shared__ __align__(1024) char shared[];
    return reinterpret_cast<GradientMemory<Tile::kRows>*>(shared + Tile::kMemoryAt)[opaque(threadIdx.x) / 32];
  };
  if constexpr (kBias) memory().clear();
  // S^T or dP^T: 64 keys against 64 queries.
  const auto multiply = [&](float(&d)[32], std::uint32_t keys, std::uint32_t rows) {
    const std::uint32_t kl = contiguous_k(keys + group * 64 * 128), rl = contiguous_k(rows);
#pragma unroll
    for (int i = 0; i < kD / 16; ++i) {
      const std::uint64_t kd = descriptor(kl + (i / 4 * Tile::kKeys * 128 + i % 4 * 32) / 16);
      const std::uint64_t rd = descriptor(rl + (i / 4 * Tile::kRows * 128 + i % 4 * 32) / 16);
      if (i == 0)
        Wgmma<T, 64>::template ss_first<0, 0>(d, kd, rd);
      else
        Wgmma<T, 64>::template ss<0, 0>(d, kd, rd, 1);
    }
    wgmma_commit();
  };
  // dV or dK += P^T dO or dS^T Q.
  const auto accumulate = [&](float(&d)[kD / 2], const std::uint32_t(&p)[16], std::uint32_t rows, int add) {
    const std::uint32_t rl = contiguous_mn(rows, Tile::kRows * 128);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      Wgmma<T, kD>::template rs<1>(d, p + 4 * i, descriptor(rl + i * 128), i > 0 ? 1 : add);
    wgmma_commit();
  };
  // dQ of one step: 64 queries, this warpgroup's columns, over 128 keys.
  const auto multiply_query_gradient = [&](float(&g)[kOwn / 2], std::uint32_t keys, std::uint32_t step) {
    const std::uint32_t sl =
        contiguous_mn(base + Tile::kScoresAt + step % 2 * Tile::kScoreBytes, Tile::kKeys * 128);
    const std::uint32_t kl = contiguous_mn(
        keys + group * kOwn / 64 * Tile::kKeys * 128 + group * kOwn % 64 * 2, Tile::kKeys * 128);
#pragma unroll
    for (int i = 0; i < Tile::kKeys / 16; ++i) {
      if (i == 0)
        Wgmma<T, kOwn>::template ss_first<1, 1>(g, descriptor(sl), descriptor(kl));
      else
        Wgmma<T, kOwn>::template ss<1, 1>(g, descriptor(sl + i * 128), descriptor(kl + i * 128), 1);
    }
    wgmma_commit();
  };
  const auto wait_scores = [&](std::uint32_t step) {
    barrier_wait(base + Tile::kScoresFull + 8 * (step & 1), step >> 1 & 1);
  };

  for (std::uint32_t turn = 0;; ++turn) {
    const Work& w = works.wait(turn);
    if (w.head == kNoWork) return;
    const int steps = w.steps;
    const int full_lo = w.groups[group].full_lo;
    int full_hi = w.groups[group].full_hi;
    // Keys beyond the end have the score 0, which is no weight of 0: every step masks them.
    if (kSoftmax && w.own_begin + group * 64 + 64 > w.n) full_hi = 0;
    // The sum of this thread's part of dQ of query block 0.
    float* const sums = a.dq_sum + sums_of_head(w.first, kD) + group * kOwn * 64 + t * 4;
    std::int32_t block_before = 0;  // of the step before
    const auto add_query_gradient = [&](float(&g)[kOwn / 2]) {
      const std::uint32_t step = scores_done - 1;
      if constexpr (kD == 64)  // instructions, not products, take most of the time
        turns.wait_idle(step);
      else
        turns.wait(step);
      const Turn kind = turns.kind(step);
      QueryPart<T, kOwn> part{a, w, block_before, group * kOwn};
      float* const sum = sums + static_cast<std::int64_t>(block_before) * (64 * kD);
      if (kind == Turn::last) {
        float before[kOwn / 2];
        load_sums<kOwn>(before, sum);
#pragma unroll
        for (int i = 0; i < kOwn / 2; ++i) g[i] += before[i];
      }
      if (is_final(kind)) {
        part.request();
        part.round(g, factor());
      } else {
        add_sums<kOwn>(sum, kind, g);
      }
      turns.take(step, lane == 0);
    };
    const std::uint32_t key_slot = turn % Tile::kKeySlots;
    const std::uint32_t keys = base + Tile::kKeysAt + key_slot * 2 * Tile::kKeyBytes,
                        values = keys + Tile::kKeyBytes;
    barrier_wait(base + Tile::kKeysFull + 8 * key_slot, turn / Tile::kKeySlots & 1);
    if constexpr (kFolded) {  // own keys; those of the other warpgroup are done before both have a first dS
#pragma unroll
      for (int column = 0; column < kD / 64; ++column)
        fold_alpha(keys + column * Tile::kKeys * 128 + group * 64 * 128, 64 * 128, a.half_alpha);
      named_barrier(2 + group, 128);
    }

    // The scores of a step with their bias; and what the tile adds to the gradients of the tables.
    const auto biased_tile = [&](int first_query) {
      if constexpr (kBias)
        return ScoreTile<true>{a.bias,     w.head, w.begin, w.n, w.own_begin + group * 64 + warp * 16,
                               first_query};
    };
    const auto read_bias = [&](int first_query) {
      if constexpr (kBias)
        return ReadBias<64, true>(biased_tile(first_query));
      else
        return 0;
    };

    const auto take_step = [&](auto first_step, int step) {
      constexpr bool kFirst = decltype(first_step)::value;
      const std::uint32_t queries = base + Tile::kQueriesAt + ring.slot * Tile::kRowBytes;
      const std::uint32_t gradients = base + Tile::kGradientsAt + ring.slot * Tile::kRowBytes;
      float s[32], dp[32], g[kOwn / 2];
      std::uint32_t p[16], ds[16];
      barrier_wait(base + Tile::kQueryFull + 8 * ring.slot, ring.phase);
      wgmma_fence();
      multiply(s, keys, queries);
      const int block = w.block(step), first_query = block * 64;
      const auto kept = [&] {
        if constexpr (kDrops)
          return KeptOfKeys(a.dropout, w, first_query);
        else
          return 0;
      };
      [[maybe_unused]] auto kept_pairs = kept();
      const bool partial = first_query < full_lo || first_query + 64 > full_hi;
      barrier_wait(base + Tile::kGradientFull + 8 * ring.slot, ring.phase);
      wgmma_fence();
      multiply(dp, values, gradients);
      [[maybe_unused]] const auto bias = read_bias(first_query);
      if constexpr (kBias) {
        wgmma_wait<1>();
        bias.add_to(s, biased_tile(first_query), factor());
      }
      if constexpr (kSoftmax) {
        const SoftmaxBlock statistics(base + Tile::kMemoryAt + ring.slot * Tile::kStatisticsBytes);
        const int key = w.own_begin + group * 64 + warp * 16 + lane / 4, query = first_query + 2 * (lane % 4);
        if constexpr (kDrops) kept_pairs.draw(a.dropout, w.head, w.own_begin + group * 64 + warp * 16);
        wgmma_wait<1>();
        if (partial) mask_queries<64>(s, a.samples, w, key, query, -INFINITY);
        if (a.hidden.period > 0) hide_key_rows<64>(s, a.hidden, w.c, key, query);
        statistics.weigh(s, a.exponent);
        wgmma_wait<0>();
        if constexpr (kDrops)
          statistics.differentiate(dp, s, kept_pairs, a.dropout.factor);
        else
          statistics.differentiate(dp, s);
      } else {
        wgmma_wait<0>();
        if (partial) {
          mask_queries<64>(s, a.samples, w, w.own_begin + group * 64 + warp * 16 + lane / 4,
                           first_query + 2 * (lane % 4), unseen_score(score_factor()));
        }
#pragma unroll
        for (int i = 0; i < 32; ++i) {
          const float x = s[i] * score_factor(), h = fast_tanh(x), b = 1.0f + h;
          s[i] = x * b;
          dp[i] *= fmaf(x, fmaf(-h, h, 1.0f), b);
        }
      }
      if constexpr (kBias)
        TableGradients<64, true>::add(dp, biased_tile(first_query), bias.buckets, 0.5f * w.scale, memory());
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        p[i] = pack<T>(s[2 * i], s[2 * i + 1]);
        ds[i] = pack<T>(dp[2 * i], dp[2 * i + 1]);
      }
      const std::uint32_t slot = scores_done & 1;
      barrier_wait(base + Tile::kScoresEmpty + 8 * slot, (scores_done >> 1 & 1) ^ 1);
      const std::uint32_t to = base + Tile::kScoresAt + slot * Tile::kScoreBytes + score_row * 128;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        store_matrices(to + (((2 * i + score_block) ^ (score_row & 7)) << 4), ds[4 * i], ds[4 * i + 1],
                       ds[4 * i + 2], ds[4 * i + 3]);
      fence_async_proxy();
      barrier_arrive(base + Tile::kScoresFull + 8 * slot);
      if constexpr (!kFirst) wait_scores(scores_done - 1);
      wgmma_fence();
      if constexpr (!kFirst) multiply_query_gradient(g, keys, scores_done - 1);
      accumulate(dv, p, gradients, kFirst ? 0 : 1);
      accumulate(dk, ds, queries, kFirst ? 0 : 1);
      if constexpr (!kFirst) {
        wgmma_wait<2>();
        arrive(Tile::kScoresEmpty + 8 * (scores_done - 1 & 1));
        add_query_gradient(g);
      }
      wgmma_wait<0>();
      arrive(Tile::kGradientEmpty + 8 * ring.slot);
      arrive(Tile::kQueryEmpty + 8 * ring.slot);
      ring.next();
      ++scores_done;
      block_before = block;
    };
    take_step(std::true_type{}, 0);
#pragma unroll 1
    for (int step = 1; step < steps; ++step) take_step(std::false_type{}, step);
    {
      float g[kOwn / 2];
      wait_scores(scores_done - 1);
      wgmma_fence();
      multiply_query_gradient(g, keys, scores_done - 1);
      wgmma_wait<0>();
      arrive(Tile::kScoresEmpty + 8 * (scores_done - 1 & 1));
      add_query_gradient(g);
    }
    const float scale = w.scale;
    if constexpr (kBias) TableGradients<64, true>::finish(biased_tile(0), 0.5f * scale, memory());
    __syncwarp();
    if (lane == 0) works.release(turn);
    // The numbers before SiLU come in the slots after the last step: V's, then K's, the rows of one warpgroup
    // in that of Q, those of the other in that of dO.
    if (a.q_before != nullptr) {
      const auto through_silu = [&](float(&d)[kD / 2]) {
        barrier_wait(base + Tile::kQueryFull + 8 * ring.slot, ring.phase);
        barrier_wait(base + Tile::kGradientFull + 8 * ring.slot, ring.phase);
        const std::uint32_t rows = base + (group == 0 ? Tile::kQueriesAt : Tile::kGradientsAt);
        multiply_by_slopes<T, kD, Tile::kRows * 128>(d, rows + ring.slot * Tile::kRowBytes);
        __syncwarp();
        arrive(Tile::kQueryEmpty + 8 * ring.slot);
        arrive(Tile::kGradientEmpty + 8 * ring.slot);
        ring.next();
      };
      through_silu(dv);
      through_silu(dk);
    }
    const int rows_at = group * (64 * 128);
    float value_scale = scale;
    if constexpr (kDrops) value_scale *= a.dropout.factor;
    store_tile<T, kD, Tile::kKeys * 128>(dv, values + rows_at, value_scale);
    named_barrier(1, 256);  // the other warpgroup's last dQ needs all keys
    store_tile<T, kD, Tile::kKeys * 128>(dk, keys + rows_at, scale * a.half_alpha);
    fence_async_proxy();
    __syncwarp();
    arrive(Tile::kOutputFull);
  }
}

template <typename T, typename Tile, bool kFolded, typename Arguments>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    backward_sm90_kernel(const __grid_constant__ Arguments a) {
  extern __shared__ __align__(1024) char shared[];
  const std::uint32_t base = shared_address(shared);
  const WorkRing works{reinterpret_cast<Work*>(shared + Tile::kWorkAt), base + Tile::kWorkFull,
                       base + Tile::kWorkEmpty};
  const Turns turns{base + Tile::kTurnsAt, 0, 1};
  const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);
  if (threadIdx.x == 0) {
    for (const CUtensorMap* map : {&a.q, &a.k, &a.v, &a.d_o, &a.dk_map, &a.dv_map}) prefetch_map(map);
    for (int i = 0; i < 2; ++i) {
      for (const int full : {Tile::kKeysFull, Tile::kQueryFull, Tile::kGradientFull})
        barrier_init(base + full + 8 * i, 1);
      for (const int empty : {Tile::kQueryEmpty, Tile::kGradientEmpty, Tile::kScoresEmpty})
        barrier_init(base + empty + 8 * i, 8);
      barrier_init(base + Tile::kKeysEmpty + 8 * i, 1);
      barrier_init(base + Tile::kScoresFull + 8 * i, 256);
    }
    for (int i = 0; i < kWorkSlots; ++i) {
      barrier_init(base + Tile::kWorkFull + 8 * i, 1);
      barrier_init(base + Tile::kWorkEmpty + 8 * i, 11);
    }
    barrier_init(base + Tile::kTicketDue, 1);
    turns.init(8);
    barrier_init(base + Tile::kOutputFull, 8);
    barrier_init_fence();
  }
  __syncthreads();
  wait_for_previous_launch();
  let_next_launch_begin();
  if (group == 2) {
    give_registers<40>();  // 40 + 2 * 232 = 3 * 168: the kernel hangs with a sum above the 168 of the start
    const int t = static_cast<int>(threadIdx.x) % 128;
    if (t == 0) {
      feed_backward<Tile>(a, base, works);
    } else if (t >= 32 && t < 64) {
      hand_out(
          a.samples, a.schedule, works, Tickets<1>{}, base + Tile::kTicketDue, NoFirstTiles{}, plan_backward,
          [&](std::uint32_t turn) { store_backward<Tile>(a, base, works.slots[turn % kWorkSlots], turn); });
    } else if (t >= 64 && t < 96) {
      grant_turns(a, turns, works);
    } else if (t == 96) {
      report_turns(a, turns, works);
    }
  } else {
    take_registers<232>();
    compute_backward<T, Tile, kFolded>(a, base, works, turns, group);
  }
}

template <typename T, int kD, typename Arguments>
void launch_backward_sm90(const Arguments& arguments, int multiprocessors, cudaStream_t stream) {
  constexpr ScoreKind kKind = std::is_same_v<Arguments, BiasedBackwardArguments>       ? ScoreKind::biased
                              : std::is_base_of_v<SoftmaxBackwardArguments, Arguments> ? ScoreKind::softmax
                                                                                       : ScoreKind::silu;
  using Tile = BackwardTile<kD, kKind>;
  const auto launch = [&](auto folded) {
    launch_early(backward_sm90_kernel<T, Tile, decltype(folded)::value, Arguments>, arguments,
                 multiprocessors, 1, Tile::kThreads, Tile::kSharedBytes, stream, "attention backward");
  };
  if constexpr (kKind == ScoreKind::softmax)
    launch(std::false_type{});
  else
    with_folding<T, kD>(arguments.half_alpha, launch);
}

}  // namespace hstu::cuda
