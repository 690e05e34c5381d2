// Attention of the beams of a search in bf16 on wgmma: a block has 64 beams of a user for each warpgroup, and
// one head. The keys of the history pass through shared memory once for all of them, the few keys of a beam's
// own codes are read by the beam. Where the blocks are few, those of a cluster share out the keys and add up
// what they find through their shared memory.
#include <algorithm>

#include "hstu/attention/few_queries/beams.cuh"
#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/mma.cuh"
#include "hstu/device/cuda/wgmma.cuh"

namespace hstu::cuda {
namespace {

using Element = __nv_bfloat16;
using Arguments = BeamArguments<Element>;

constexpr unsigned kAll = 0xffffffffu;
constexpr int kKeys = 64;   // of a tile
constexpr int kStages = 2;  // of tiles of keys and values
constexpr int kMostSplits = 8;
constexpr int kRowBytes = 128;  // of 64 elements: heads of 128 have two boxes of such rows

// Copies kRows rows, of which `there` exist, as boxes in the 128-byte swizzle; the others become zeros.
template <int kD, int kRows, int kThreads>
__device__ __forceinline__ void copy_boxes(std::uint32_t to, const AttentionInput& from, std::int64_t first,
                                           int head, int there) {
  constexpr int kPieces = kD / 8;
  const char* const data = static_cast<const char*>(from.data) + 2 * head * from.head_stride;
#pragma unroll 1  // addresses of all would take the registers of sums
  for (int n = 0; n < kRows * kPieces / kThreads; ++n) {
    const int i = static_cast<int>(threadIdx.x) + n * kThreads, row = i / kPieces, piece = i % kPieces;
    const bool inside = row < there;
    copy_or_zero(to + (piece / 8 * kRows + row) * kRowBytes + ((piece % 8 ^ (row & 7)) * 16),
                 inside ? data + 2 * ((first + row) * from.row_stride + piece * 8) : data, inside ? 16 : 0);
  }
}

// A lane's part of two rows of its warp's sixteen, lane / 4 and that + 8: columns 8 j + 2 (lane % 4) and the
// next, as wgmma leaves them.
template <int kD>
struct State {
  float sum[kD / 2];
  float largest[2], weights[2];
};

__device__ __forceinline__ float quad_greatest(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAll, x, 1));
  return fmaxf(x, __shfl_xor_sync(kAll, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(kAll, x, 1);
  return x + __shfl_xor_sync(kAll, x, 2);
}
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Begins with the keys of the beams' own codes, of which this block of the cluster has some. `q`: the row of
// the first of the two beams.
template <int kD, int kRows>
__device__ __forceinline__ void begin_with_codes(State<kD>& state, const Arguments& a, std::uint32_t q,
                                                 int split, const std::int64_t (&beam)[2], int head) {
  const int quad = threadIdx.x % 4, row = threadIdx.x % 32 / 4;
#pragma unroll 1
  for (int c = split; c < a.codes; c += a.splits) {
    const std::int64_t at[2] = {a.row_of(beam[0], c), a.row_of(beam[1], c)};
    std::uint32_t pairs[2][kD / 8];
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int j = 0; j < kD / 8; ++j)
        pairs[half][j] = reinterpret_cast<const std::uint32_t*>(a.code_k[c].at(at[half], head))[quad + 4 * j];
    float before[2], weight[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float score = 0;
#pragma unroll
      for (int j = 0; j < kD / 8; ++j) {
        const std::uint32_t from =
            q + (j / 8 * kRows + 8 * half) * kRowBytes + ((j % 8 ^ row) * 16) + quad * 4;
        const float2 x = unpack<Element>(load_shared(from)), y = unpack<Element>(pairs[half][j]);
        score = fmaf(x.x, y.x, fmaf(x.y, y.y, score));
      }
      score = quad_sum(score) * a.scale;
      const float most = fmaxf(state.largest[half], score);
      before[half] = exp2f(state.largest[half] - most), weight[half] = exp2f(score - most);
      state.largest[half] = most;
      state.weights[half] = state.weights[half] * before[half] + weight[half];
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int j = 0; j < kD / 8; ++j)
        pairs[0][j] = reinterpret_cast<const std::uint32_t*>(a.code_v[c].at(at[half], head))[quad + 4 * j];
#pragma unroll
      for (int j = 0; j < kD / 8; ++j) {
        const float2 y = unpack<Element>(pairs[0][j]);
        float* const sum = state.sum + 4 * j + 2 * half;
        sum[0] = fmaf(weight[half], y.x, sum[0] * before[half]);
        sum[1] = fmaf(weight[half], y.y, sum[1] * before[half]);
      }
    }
  }
}

// Weights of a tile's scores, of keys of which `there` exist, and what was summed so far relative to them.
template <int kD>
__device__ __forceinline__ void weigh(State<kD>& state, float (&s)[kKeys / 2],
                                      std::uint32_t (&packed)[kKeys / 4], float scale, int there) {
  float most[2] = {-INFINITY, -INFINITY};
#pragma unroll
  for (int i = 0; i < kKeys / 2; ++i) {
    if (there < kKeys && i / 4 * 8 + static_cast<int>(threadIdx.x % 4) * 2 + i % 2 >= there) s[i] = -INFINITY;
    most[i / 2 % 2] = fmaxf(most[i / 2 % 2], s[i]);
  }
  float before[2], weights[2] = {0, 0};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float largest = fmaxf(state.largest[half], quad_greatest(most[half]) * scale);
    before[half] = fast_exp2(state.largest[half] - largest);  // 0 at first
    state.largest[half] = largest;
  }
#pragma unroll
  for (int i = 0; i < kKeys / 4; ++i) {
    const float x = fast_exp2(fmaf(s[2 * i], scale, -state.largest[i % 2])),
                y = fast_exp2(fmaf(s[2 * i + 1], scale, -state.largest[i % 2]));
    weights[i % 2] += x + y;
    packed[i] = pack<Element>(x, y);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half)
    state.weights[half] = state.weights[half] * before[half] + quad_sum(weights[half]);
#pragma unroll
  for (int i = 0; i < kD / 2; ++i) state.sum[i] *= before[i / 2 % 2];
}

// Rows of sums that the blocks of a cluster leave for each other: kD, then the largest score and the weights.
template <int kD>
inline constexpr int kSumStride = kD + 8;  // floats

template <int kGroups, int kD>
constexpr int shared_bytes() {
  const int rows = 64 * kGroups, stages = kStages * 2 * kKeys * kD * 2;
  return rows * kD * 2 + std::max(stages, rows * kSumStride<kD> * 4) + 1024;
}

// Adds up the sums of the cluster's blocks; each takes some of the rows.
template <int kGroups, int kD>
__device__ void merge(const State<kD>& state, const Arguments& a, std::uint32_t sums, int row,
                      std::int64_t first_beam, int rows, int head) {
  constexpr int kStride = kSumStride<kD> * 4;
  const int lane = threadIdx.x % 32;
  __syncthreads();  // the last tile has been read
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t to = sums + (row + 8 * half) * kStride;
#pragma unroll
    for (int j = 0; j < kD / 8; ++j)
      store_shared_pair(to + (8 * j + lane % 4 * 2) * 4, state.sum[4 * j + 2 * half],
                        state.sum[4 * j + 2 * half + 1]);
    if (lane % 4 == 0) store_shared_pair(to + kD * 4, state.largest[half], state.weights[half]);
  }
  cluster_barrier();
  const int rank = static_cast<int>(cluster_rank());
  constexpr int kPieces = kD / 4;
  for (int i = threadIdx.x; i < 64 * kGroups * kPieces / a.splits; i += 128 * kGroups) {
    const int r = i / kPieces * a.splits + rank, piece = i % kPieces;
    if (r >= rows) continue;
    float2 part[kMostSplits];  // the largest score, the weights
    float4 of_part[kMostSplits], sum{0, 0, 0, 0};
#pragma unroll
    for (int peer = 0; peer < kMostSplits; ++peer) {
      if (peer >= a.splits) continue;
      const std::uint32_t from = peer_address(sums + r * kStride, peer);
      part[peer] = load_pair_of_peer(from + kD * 4);
      of_part[peer] = load_quad_of_peer(from + piece * 16);
    }
    float largest = -INFINITY, weights = 0;
#pragma unroll
    for (int peer = 0; peer < kMostSplits; ++peer)
      if (peer < a.splits) largest = fmaxf(largest, part[peer].x);
#pragma unroll
    for (int peer = 0; peer < kMostSplits; ++peer) {
      if (peer >= a.splits) continue;
      const float factor = exp2f(part[peer].x - largest);
      const float4 x = of_part[peer];
      weights = fmaf(factor, part[peer].y, weights);
      sum.x = fmaf(factor, x.x, sum.x), sum.y = fmaf(factor, x.y, sum.y);
      sum.z = fmaf(factor, x.z, sum.z), sum.w = fmaf(factor, x.w, sum.w);
    }
    const float all = 1.0f / weights;
    *reinterpret_cast<uint2*>(a.o.at(first_beam + r, head) + piece * 4) = {
        pack<Element>(sum.x * all, sum.y * all), pack<Element>(sum.z * all, sum.w * all)};
  }
  cluster_barrier();  // until the others have read this block's sums
}

template <int kGroups, int kD>
__global__ void __launch_bounds__(128 * kGroups, 2) beams_wgmma(const __grid_constant__ Arguments a) {
  constexpr int kRows = 64 * kGroups, kThreads = 128 * kGroups, kTileBytes = kKeys * kD * 2;
  extern __shared__ char memory[];
  const std::uint32_t q = (shared_address(memory) + 1023) & ~1023u, stages = q + kRows * kD * 2;
  const int split = static_cast<int>(blockIdx.x) % a.splits, tile = static_cast<int>(blockIdx.x) / a.splits;
  const int head = blockIdx.y, first = tile * kRows;
  const int rows = min(kRows, static_cast<int>(a.beams) - first);
  const std::int64_t first_beam = blockIdx.z * a.beams + first;
  const int lane = threadIdx.x % 32, own_row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
  let_next_launch_begin();
  wait_for_previous_launch();
  const std::int64_t begin = a.offsets[blockIdx.z];
  const int keys = static_cast<int>(a.offsets[blockIdx.z + 1] - begin);
  const int tiles = (keys + kKeys - 1) / kKeys, each = (tiles + a.splits - 1) / a.splits;
  const int from = split * each, end = min(from + each, tiles);
  const auto copy_tile = [&](int t) {
    if (t < end) {
      const std::uint32_t to = stages + (t - from) % kStages * (2 * kTileBytes);
      copy_boxes<kD, kKeys, kThreads>(to, a.k_rows, begin + t * kKeys, head, keys - t * kKeys);
      copy_boxes<kD, kKeys, kThreads>(to + kTileBytes, a.v_rows, begin + t * kKeys, head, keys - t * kKeys);
    }
    commit_copies();
  };
  copy_boxes<kD, kRows, kThreads>(q, a.q_rows, first_beam, head, rows);
  commit_copies();
  copy_tile(from);

  State<kD> state;
#pragma unroll
  for (float& sum : state.sum) sum = 0;
  state.largest[0] = state.largest[1] = -INFINITY;
  state.weights[0] = state.weights[1] = 0;
  if (split < a.codes) {  // all threads alike
    wait_for_copy_groups<1>();
    __syncthreads();
    const std::int64_t beam[2] = {first_beam + min(own_row, rows - 1),
                                  first_beam + min(own_row + 8, rows - 1)};
    begin_with_codes<kD, kRows>(state, a, q + own_row * kRowBytes, split, beam, head);
  }
  for (int t = from; t < end; ++t) {
    wait_for_copy_groups<0>();
    fence_async_proxy();
    __syncthreads();
    copy_tile(t + 1);
    const std::uint32_t tile_at = stages + (t - from) % kStages * (2 * kTileBytes);
    const std::uint32_t queries = contiguous_k(q + static_cast<int>(threadIdx.x) / 128 * 64 * kRowBytes),
                        keys_at = contiguous_k(tile_at);
    float s[kKeys / 2];
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < kD / 16; ++k) {
      const std::uint64_t left = descriptor(queries + (k / 4 * kRows * kRowBytes >> 4) + k % 4 * 2),
                          right = descriptor(keys_at + (k / 4 * kKeys * kRowBytes >> 4) + k % 4 * 2);
      if (k == 0)
        Wgmma<Element, kKeys>::template ss_first<0, 0>(s, left, right);
      else
        Wgmma<Element, kKeys>::template ss<0, 0>(s, left, right, 1);
    }
    wgmma_commit();
    wgmma_wait<0>();
    std::uint32_t packed[kKeys / 4];
    weigh<kD>(state, s, packed, a.scale, keys - t * kKeys);
    const std::uint32_t values = contiguous_mn(tile_at + kTileBytes, kKeys * kRowBytes);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k)
      Wgmma<Element, kD>::template rs<1>(state.sum, packed + 4 * k, descriptor(values + k * 128), 1);
    wgmma_commit();
    wgmma_wait<0>();
  }
  wait_for_copies();
  if (a.splits > 1) return merge<kGroups, kD>(state, a, stages, own_row, first_beam, rows, head);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = own_row + 8 * half;
    if (row >= rows) continue;
    const float all = 1.0f / state.weights[half];
    auto* const to = reinterpret_cast<std::uint32_t*>(a.o.at(first_beam + row, head)) + lane % 4;
#pragma unroll
    for (int j = 0; j < kD / 8; ++j)
      to[4 * j] = pack<Element>(state.sum[4 * j + 2 * half] * all, state.sum[4 * j + 2 * half + 1] * all);
  }
}

template <int kGroups, int kD>
void launch_wgmma(const BeamAttention& p, int splits, const AttentionRows& o, cudaStream_t stream) {
  constexpr int kRows = 64 * kGroups;
  Arguments a = beam_arguments<Element>(p, o);
  a.splits = splits;
  const auto tiles = static_cast<unsigned>((p.beams + kRows - 1) / kRows);
  launch_grid(beams_wgmma<kGroups, kD>, a,
              dim3(tiles * static_cast<unsigned>(splits), static_cast<unsigned>(p.heads),
                   static_cast<unsigned>(p.users)),
              splits, 128 * kGroups, shared_bytes<kGroups, kD>(), stream, kBeamsWhat);
}

// Large blocks, or small ones of which several share a user's keys. Two are on a multiprocessor.
template <int kD>
void launch_by_size(const BeamAttention& p, const AttentionRows& o, cudaStream_t stream) {
  const std::int64_t multiprocessors = current_device_attribute(cudaDevAttrMultiProcessorCount, kBeamsWhat);
  const std::int64_t pairs = p.users * p.heads;
  if (p.beams > 64 && pairs * ((p.beams + 127) / 128) >= multiprocessors)
    return launch_wgmma<2, kD>(p, 1, o, stream);
  const std::int64_t blocks = pairs * ((p.beams + 63) / 64);
  int splits = 1;
  while (splits < kMostSplits && blocks * splits <= multiprocessors && p.tokens > p.users * kKeys * splits)
    splits *= 2;
  launch_wgmma<1, kD>(p, splits, o, stream);
}

}  // namespace

void beam_attention_sm90(const BeamAttention& p, const AttentionRows& o, cudaStream_t stream) {
  if (p.head_dim == 64) return launch_by_size<64>(p, o, stream);
  launch_by_size<128>(p, o, stream);
}

}  // namespace hstu::cuda
