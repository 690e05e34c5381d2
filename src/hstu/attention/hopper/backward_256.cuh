// Backward pass on Hopper, head size 256. The registers of a block hold dK and dV of 64 keys only. With tiles
// of 64 keys the sum of dQ in memory would be the limit, so two blocks form a cluster that takes 128 keys.
// They exchange their dS through shared memory, and each sums half of the columns of dQ. Both walk the same
// queries and share one copy of Q and dO. The warpgroups of a block have roles:
//
//   value      S^T = K Q^T, P^T = silu, dV += P^T dO;
//              passes g = 2 silu' to the next role as fp16, zero where masked
//   key        dP^T = V dO^T, dS^T = dP^T g, dK += dS^T Q;
//              writes dS^T for its own block and the peer
//   query      dQ of 64 queries and its half of the columns, from both dS (query_role_256.cuh)
//   producer   warp 0 copies, warp 1 hands out tiles
#pragma once

#include <type_traits>

#include "hstu/attention/cuda/accumulator.cuh"
#include "hstu/attention/hopper/query_role_256.cuh"
#include "hstu/attention/hopper/tile_256.cuh"
#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/wgmma.cuh"

namespace hstu::cuda {

// d = A B^T: 64 keys (K or V) against 64 queries (Q or dO), over one half of the columns, which the second
// adds.
template <typename T, int kHalf>
__device__ __forceinline__ void multiply_half(Half<kHalf>, float (&d)[32], std::uint32_t keys,
                                              std::uint32_t rows) {
  const std::uint32_t kl = contiguous_k(keys + kHalf * 2 * Tile256::kColumnBytes), rl = contiguous_k(rows);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const std::uint32_t at = (i / 4 * Tile256::kColumnBytes + i % 4 * 32) / 16;
    if (kHalf == 0 && i == 0)
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
  float half[2][64];
  // `rows` are the same half of the columns of Q or dO.
  template <int kHalf>
  __device__ __forceinline__ void add(Half<kHalf>, const std::uint32_t (&p)[16], std::uint32_t rows,
                                      int add) {
    const std::uint32_t rl = contiguous_mn(rows, Tile256::kColumnBytes);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      Wgmma<T, 128>::template rs<1>(half[kHalf], p + 4 * i, descriptor(rl + i * 128), i > 0 ? 1 : add);
    wgmma_commit();
  }
  // `before` is the same half of the block's tile of keys or values before SiLU.
  template <int kHalf>
  __device__ __forceinline__ void multiply_by_slopes(Half<kHalf>, std::uint32_t before) {
    cuda::multiply_by_slopes<T, 128, Tile256::kColumnBytes>(half[kHalf], before);
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
    store_rows<T, 128>(half[0], at, row_stride, scale, row < n, row + 8 < n, 128);
    store_rows<T, 128>(half[1], at + 128, row_stride, scale, row < n, row + 8 < n, 128);
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
        multiply_half<T>(Half<0>{}, s, keys, queries);
        multiply_half<T>(Half<1>{}, s, keys, queries + L::kRowBytes / 2);
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
      role.with_gradients([&](auto half, std::uint32_t gradients) {
        wgmma_fence();
        dv.add(half, p, gradients, kFirst ? 0 : 1);
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
      role.with_gradients([&](auto half, std::uint32_t before) { dv.multiply_by_slopes(half, before); });
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
      role.with_gradients([&](auto half, std::uint32_t gradients) {
        wgmma_fence();
        multiply_half<T>(half, d, values, gradients);
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
      const std::uint32_t scores = role.base + L::kScoresAt + slot * L::kScoreSlotBytes;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        store_matrices(scores + score_row * 128 + (((2 * i + score_block) ^ (score_row & 7)) << 4), ds[4 * i],
                       ds[4 * i + 1], ds[4 * i + 2], ds[4 * i + 3]);
      fence_async_proxy();
      barrier_arrive(role.base + L::kScoresFull + 8 * slot);
      named_barrier(1, 128);
      if (role.t == 0)
        copy_to_peer(role.peer(L::kPeerScoresAt + slot * L::kScoreSlotBytes), scores, L::kScoreBytes,
                     role.peer(L::kPeerScoresFull + 8 * slot));
      role.with_queries([&](std::uint32_t queries) {
        wgmma_fence();
        dk.add(Half<0>{}, ds, queries, kFirst ? 0 : 1);
        dk.add(Half<1>{}, ds, queries + L::kRowBytes / 2, kFirst ? 0 : 1);
        wgmma_wait<0>();
      });
      ++role.steps_done;
    };
    take_step(std::true_type{}, steps == 1);
#pragma unroll 1
    for (int step = 1; step < steps; ++step) take_step(std::false_type{}, step == steps - 1);
    if (role.a.q_before != nullptr) {
      role.with_queries([&](std::uint32_t before) {
        dk.multiply_by_slopes(Half<0>{}, before);
        dk.multiply_by_slopes(Half<1>{}, before + L::kRowBytes / 2);
      });
      role.with_gradients([](auto, std::uint32_t) {});
    }
    dk.store(role, turn, w, role.a.dk, role.a.dk_row_stride, role.a.dk_head_stride, role.a.half_alpha);
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
    for (int i = 0; i < 2; ++i) {
      barrier_init(base + L::kKeysFull + 8 * i, 1);
      barrier_init(base + L::kGradientFull + 8 * i, 1);
      barrier_init(base + L::kGradientEmpty + 8 * i, 16);
      barrier_init(base + L::kQueryFull + 8 * i, 1);
      barrier_init(base + L::kQueryEmpty + 8 * i, 16);
      for (const int all : {L::kSlopesFull, L::kSlopesEmpty, L::kScoresFull})
        barrier_init(base + all + 8 * i, 128);
      barrier_init(base + L::kScoresEmpty + 8 * i, 4);
      barrier_init(base + L::kPeerScoresFull + 8 * i, 1);
      barrier_init(base + L::kPeerScoresEmpty + 8 * i, 4);
      barrier_init(base + L::kBeforeFull + 8 * i, 1);
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
    QueryRole<T> queries{role()};
    queries.run();
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
