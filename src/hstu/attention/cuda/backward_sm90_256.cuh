// Backward pass on Hopper, head size 256. The registers of a block hold dK and dV of 64 keys only. With tiles
// of 64 keys the sum of dQ in memory would be the limit, so two blocks form a cluster that takes 128 keys.
// They exchange their dS through shared memory, and each sums half of the columns of dQ. Both walk the same
// queries and share one copy of Q and dO. The warpgroups of a block have roles:
//
//   value      S^T = K Q^T, P^T = silu, dV += P^T dO;
//              passes g = 2 silu' to the next role as fp16, zero where masked
//   key        dP^T = V dO^T, dS^T = dP^T g, dK += dS^T Q;
//              writes dS^T for its own block and the peer
//   query      dQ of 64 queries and its half of the columns, from both dS;
//              adds 64 columns while it multiplies the next 64
//   producer   warp 0 copies, warp 1 hands out tiles
#pragma once

#include <type_traits>

#include "hstu/attention/cuda/accumulator.cuh"
#include "hstu/attention/cuda/query_sums.cuh"
#include "hstu/attention/cuda/tile_256.cuh"
#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/wgmma.cuh"

namespace hstu::cuda {

// d = A B^T: 64 keys (K or V) against 64 queries (Q or dO), over 256 columns.
template <typename T>
__device__ __forceinline__ void multiply_256(float (&d)[32], std::uint32_t keys, std::uint32_t rows) {
  const std::uint32_t kl = contiguous_k(keys), rl = contiguous_k(rows);
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const std::uint32_t at = (i / 4 * Tile256::kColumnBytes + i % 4 * 32) / 16;
    if (i == 0)
      Wgmma<T, 64>::template ss_first<0, 0>(d, descriptor(kl), descriptor(rl));
    else
      Wgmma<T, 64>::template ss<0, 0>(d, descriptor(kl + at), descriptor(rl + at), 1);
  }
  wgmma_commit();
}

// The gradient of 64 keys, in two halves of the columns. (All 256 columns do not fit into the registers that
// a thread has at the start of a kernel of 512 threads.)
template <typename T>
struct KeyGradient {
  float low[64], high[64];
  __device__ __forceinline__ void add(const std::uint32_t (&p)[16], std::uint32_t rows, int add) {
    const std::uint32_t rl = contiguous_mn(rows, Tile256::kColumnBytes);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      Wgmma<T, 128>::template rs<1>(low, p + 4 * i, descriptor(rl + i * 128), i > 0 ? 1 : add);
      Wgmma<T, 128>::template rs<1>(
          high, p + 4 * i, descriptor(rl + 2 * Tile256::kColumnBytes / 16 + i * 128), i > 0 ? 1 : add);
    }
    wgmma_commit();
  }
  // `before` is the block's tile of keys or values before SiLU.
  __device__ __forceinline__ void multiply_by_slopes(std::uint32_t before) {
    cuda::multiply_by_slopes<T, 128, Tile256::kColumnBytes>(low, before);
    cuda::multiply_by_slopes<T, 128, Tile256::kColumnBytes>(high, before + 2 * Tile256::kColumnBytes);
  }
  __device__ __forceinline__ void store(const Role256& role, std::uint32_t turn, const Work& w, void* to,
                                        std::int64_t row_stride, std::int64_t head_stride,
                                        float factor) const {
    const int row = w.own_begin + static_cast<int>(role.rank) * 64 + role.t / 32 * 16 + role.t % 32 / 4,
              n = w.n;
    T* const at = static_cast<T*>(to) + (w.begin + static_cast<std::int64_t>(row)) * row_stride +
                  w.head * head_stride + role.t % 4 * 8;
    const float scale = factor * w.scale;
    role.release_work(turn);
    store_rows<T, 128>(low, at, row_stride, scale, row < n, row + 8 < n, 128);
    store_rows<T, 128>(high, at + 128, row_stride, scale, row < n, row + 8 < n, 128);
  }
};

template <typename T>
__device__ __forceinline__ void value_role(Role256 role) {
  using L = Tile256;
  KeyGradient<T> dv;
  for (std::uint32_t turn = 0;; ++turn) {
    const Work& w = role.work(turn);
    if (w.head == kNoWork) return;
    role.wait_keys(turn);
    const std::uint32_t keys = role.keys(turn);
    const int steps = w.steps;
    const int own = w.own_begin + static_cast<int>(role.rank) * 64;
    const int full_lo = w.groups[role.rank].full_lo;
    const int full_hi = own < w.n ? w.groups[role.rank].full_hi : 0;  // no key beyond the sample sees a query
    const auto take_step = [&](auto first_step, int step) {
      constexpr bool kFirst = decltype(first_step)::value;
      float s[32];
      std::uint32_t p[16];
      const int first_query = w.block(step) * 64;
      const bool partial = first_query < full_lo || first_query + 64 > full_hi;
      role.with_queries([&](std::uint32_t queries) {
        wgmma_fence();
        multiply_256<T>(s, keys, queries);
        wgmma_wait<0>();
      });
      if (partial) {
        const int key = w.own_begin + static_cast<int>(role.rank) * 64 + role.t / 32 * 16 + role.t % 32 / 4;
        mask_queries<64>(s, role.a.samples, w, key, first_query + 2 * (role.t % 4),
                         unseen_score(role.a.half_alpha));
      }
      const int slot = static_cast<int>(role.slot());
      role.wait(L::kSlopesEmpty + 8 * slot, role.phase() ^ 1);
      const std::uint32_t to = role.base + L::kSlopesAt + slot * L::kScoreBytes + role.t * 16;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        std::uint32_t g[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          float two[2];
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& score = s[8 * i + 2 * k + e];
            const float x = score * role.a.half_alpha, h = fast_tanh(x), b = 1.0f + h;
            score = x * b;
            two[e] = fmaf(x, fmaf(-h, h, 1.0f), b);
          }
          g[k] = pack<__half>(two[0], two[1]);
        }
        store_shared_quad(to + i * 2048, make_uint4(g[0], g[1], g[2], g[3]));
      }
      barrier_arrive(role.base + L::kSlopesFull + 8 * slot);
#pragma unroll
      for (int i = 0; i < 16; ++i) p[i] = pack<T>(s[2 * i], s[2 * i + 1]);
      role.with_gradients([&](std::uint32_t gradients) {
        wgmma_fence();
        dv.add(p, gradients, kFirst ? 0 : 1);
        wgmma_wait<0>();
      });
      ++role.steps_done;
    };
    take_step(std::true_type{}, 0);
#pragma unroll 1
    for (int step = 1; step < steps; ++step) take_step(std::false_type{}, step);
    role.arrive(L::kKeysEmpty);
    if (role.a.q_before != nullptr) {
      role.with_queries([](std::uint32_t) {});
      role.with_gradients([&](std::uint32_t before) { dv.multiply_by_slopes(before); });
    }
    dv.store(role, turn, w, role.a.dv, role.a.dv_row_stride, role.a.dv_head_stride, 1.0f);
  }
}

template <typename T>
__device__ __forceinline__ void key_role(Role256 role) {
  using L = Tile256;
  const int lane = role.t % 32;
  const int score_row = role.t / 32 * 16 + (lane >> 3 & 1) * 8 + (lane & 7), score_block = lane >> 4;
  KeyGradient<T> dk;
  for (std::uint32_t turn = 0;; ++turn) {
    const Work& w = role.work(turn);
    if (w.head == kNoWork) return;
    role.wait_values(turn);
    const std::uint32_t values = role.values(turn);
    const int steps = w.steps;
    const auto take_step = [&](auto first_step, bool last) {
      constexpr bool kFirst = decltype(first_step)::value;
      float d[32];
      std::uint32_t ds[16];
      role.with_gradients([&](std::uint32_t gradients) {
        wgmma_fence();
        multiply_256<T>(d, values, gradients);
        wgmma_wait<0>();
      });
      if (last) role.arrive(L::kValuesEmpty);
      const int slot = static_cast<int>(role.slot());
      role.wait(L::kSlopesFull + 8 * slot, role.phase());
      const std::uint32_t from = role.base + L::kSlopesAt + slot * L::kScoreBytes + role.t * 16;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint4 four = load_shared_quad(from + i * 2048);
        const std::uint32_t g[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float2 two = unpack<__half>(g[k]);
          ds[4 * i + k] = pack<T>(d[8 * i + 2 * k] * two.x, d[8 * i + 2 * k + 1] * two.y);
        }
      }
      barrier_arrive(role.base + L::kSlopesEmpty + 8 * slot);
      role.wait(L::kScoresEmpty + 8 * slot, role.phase() ^ 1);
      role.wait(L::kPeerScoresEmpty + 8 * slot, role.phase() ^ 1);
      const std::uint32_t scores = role.base + L::kScoresAt + slot * L::kScoreBytes;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        store_matrices(scores + score_row * 128 + (((2 * i + score_block) ^ (score_row & 7)) << 4), ds[4 * i],
                       ds[4 * i + 1], ds[4 * i + 2], ds[4 * i + 3]);
      fence_async_proxy();
      barrier_arrive(role.base + L::kScoresFull + 8 * slot);
      named_barrier(1, 128);
      if (role.t == 0)
        copy_to_peer(role.peer(L::kPeerScoresAt + slot * L::kScoreBytes), scores, L::kScoreBytes,
                     role.peer(L::kPeerScoresFull + 8 * slot));
      role.with_queries([&](std::uint32_t queries) {
        wgmma_fence();
        dk.add(ds, queries, kFirst ? 0 : 1);
        wgmma_wait<0>();
      });
      ++role.steps_done;
    };
    take_step(std::true_type{}, steps == 1);
#pragma unroll 1
    for (int step = 1; step < steps; ++step) take_step(std::false_type{}, step == steps - 1);
    if (role.a.q_before != nullptr) {
      role.with_queries([&](std::uint32_t before) { dk.multiply_by_slopes(before); });
      role.with_gradients([](std::uint32_t) {});
    }
    dk.store(role, turn, w, role.a.dk, role.a.dk_row_stride, role.a.dk_head_stride, role.a.half_alpha);
  }
}

template <typename T>
__device__ __forceinline__ void query_role(Role256 role) {
  using L = Tile256;
  const int first_part = static_cast<int>(role.rank) * 2;
  for (std::uint32_t turn = 0;; ++turn) {
    const Work& w = role.work(turn);
    if (w.head == kNoWork) return;
    role.wait_keys(turn);
    role.wait_values(turn);
    // One half of the columns of the tile's part of dQ: in place of g, or added to it.
    const auto multiply = [&](auto add, float(&g)[32], int half) {
      const std::uint32_t scores = role.slot() * L::kScoreBytes;
      const std::uint32_t own = contiguous_mn(role.base + L::kScoresAt + scores, L::kColumnBytes);
      const std::uint32_t keys =
          contiguous_mn(role.keys(turn) + (first_part + half) * L::kColumnBytes, L::kColumnBytes);
      const std::uint32_t other = contiguous_mn(role.base + L::kPeerScoresAt + scores, L::kColumnBytes);
      const std::uint32_t peer_keys =
          contiguous_mn(role.base + L::kPeerKeysAt + half * L::kColumnBytes, L::kColumnBytes);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (!decltype(add)::value && i == 0)
          Wgmma<T, 64>::template ss_first<1, 1>(g, descriptor(own), descriptor(keys));
        else
          Wgmma<T, 64>::template ss<1, 1>(g, descriptor(own + i * 128), descriptor(keys + i * 128), 1);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
        Wgmma<T, 64>::template ss<1, 1>(g, descriptor(other + i * 128), descriptor(peer_keys + i * 128), 1);
      wgmma_commit();
    };
#pragma unroll 1
    for (int step = 0; step < w.steps; ++step) {
      const int slot = static_cast<int>(role.slot());
      const auto part = [&](int half) {
        const std::int32_t block = w.block(step);
        return QueryPart<T, 64>{role.a, w, block, (first_part + half) * 64,
                                role.a.dq_sum + sums_of_head(w.first, L::kD) +
                                    static_cast<std::int64_t>(block) * (64 * L::kD) +
                                    (first_part + half) * 4096 + role.t * 4};
      };
      const auto release_scores = [&] {
        if (role.leader()) {
          barrier_arrive(role.base + L::kScoresEmpty + 8 * slot);
          barrier_arrive_peer(role.peer(L::kPeerScoresEmpty + 8 * slot));
        }
        if (step == w.steps - 1) role.arrive(L::kKeysEmpty);
      };
      if (role.t == 0) barrier_expect(role.base + L::kPeerScoresFull + 8 * slot, L::kScoreBytes);
      const Turn kind = role.turns.announced(role.steps_done);
      role.wait(L::kScoresFull + 8 * slot, role.phase());
      role.wait(L::kPeerScoresFull + 8 * slot, role.phase());
      if (!is_final(kind)) {
        float low[32], high[32];
        multiply(std::false_type{}, low, 0);
        multiply(std::false_type{}, high, 1);
        role.turns.wait(role.steps_done);
        wgmma_wait<1>();
        part(0).add(kind, low);
        wgmma_wait<0>();
        release_scores();
        part(1).add(kind, high);
      } else {
        float g[32];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          QueryPart<T, 64> own = part(half);
          own.request();
          if (kind == Turn::last) {  // the products are added to the sum of the other tiles
            role.turns.wait(role.steps_done);
            load_sums<64>(g, own.sums);
          } else {
#pragma unroll
            for (float& x : g) x = 0;
          }
          multiply(std::true_type{}, g, half);
          role.turns.wait(role.steps_done);
          wgmma_wait<0>();
          if (half == 1) release_scores();
          own.round(g, role.a.half_alpha);
        }
      }
      role.turns.take(role.steps_done, role.leader());
      ++role.steps_done;
    }
    role.release_work(turn);
  }
}

template <typename T>
__global__ void __launch_bounds__(Tile256::kThreads, 1)
    backward_sm90_256_kernel(const __grid_constant__ BackwardArguments a) {
  using L = Tile256;
  extern __shared__ __align__(1024) char shared[];
  const std::uint32_t base = shared_address(shared);
  const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0);
  if (threadIdx.x == 0) {
    for (const CUtensorMap* map : {&a.q, &a.k, &a.v, &a.d_o, &a.k_half}) prefetch_map(map);
    barrier_init(base + L::kKeysEmpty, 8);
    barrier_init(base + L::kValuesFull, 1);
    barrier_init(base + L::kValuesEmpty, 4);
    barrier_init(base + L::kGradientFull, 1);
    barrier_init(base + L::kGradientEmpty, 16);
    for (int i = 0; i < 2; ++i) {
      barrier_init(base + L::kKeysFull + 8 * i, 1);
      barrier_init(base + L::kQueryFull + 8 * i, 1);
      barrier_init(base + L::kQueryEmpty + 8 * i, 16);
      for (const int all : {L::kSlopesFull, L::kSlopesEmpty, L::kScoresFull})
        barrier_init(base + all + 8 * i, 128);
      barrier_init(base + L::kScoresEmpty + 8 * i, 4);
      barrier_init(base + L::kPeerScoresFull + 8 * i, 1);
      barrier_init(base + L::kPeerScoresEmpty + 8 * i, 4);
    }
    for (int i = 0; i < kWorkSlots; ++i) {
      barrier_init(base + L::kWorkFull + 8 * i, 1);
      barrier_init(base + L::kWorkEmpty + 8 * i, 15);
    }
    barrier_init(base + L::kTicketDue, 1);
    Tickets<2>{base + L::kTicketsAt}.init();
    Turns{base + L::kTurnsAt, 0, 2}.init(4);
    barrier_init_fence();
  }
  __syncthreads();
  cluster_barrier();  // the peer's barriers exist before anything is sent to them
  wait_for_previous_launch();
  let_next_launch_begin();
  // Made by each role: what all roles share would be kept in memory, because one of them lacks registers.
  const auto role = [&] {
    const std::uint32_t rank = cluster_rank();
    return Role256{a,
                   base,
                   rank,
                   {reinterpret_cast<Work*>(shared + L::kWorkAt), base + L::kWorkFull, base + L::kWorkEmpty},
                   {base + L::kTurnsAt, rank, 2},
                   static_cast<int>(opaque(threadIdx.x)) % 128,
                   {},
                   0};
  };
  if (group == 0) {
    take_registers<192>();
    value_role<T>(role());
  } else if (group == 1) {
    take_registers<192>();
    key_role<T>(role());
  } else if (group == 2) {
    give_registers<96>();
    query_role<T>(role());
  } else {
    give_registers<32>();
    const int warp = static_cast<int>(threadIdx.x) % 128 / 32;
    if (warp == 0) {
      if (threadIdx.x % 32 == 0) feed_256(role());
    } else if (warp == 1) {
      hand_out(a.samples, a.schedule, role().works, Tickets<2>{base + L::kTicketsAt}, base + L::kTicketDue,
               NoFirstTiles{}, plan_backward, [](std::uint32_t) {});
    } else if (warp == 2) {
      grant_turns(a, role().turns, role().works);
    } else if (threadIdx.x % 32 == 0) {
      report_turns(a, role().turns, role().works);
    }
  }
  __syncwarp();
  cluster_barrier();  // no block leaves while its peer may still send to it
}

}  // namespace hstu::cuda
