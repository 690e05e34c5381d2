// Attention of the beams of a search in bf16: a block has 16 beams of a user for each warp, and one head. The
// keys of the history pass through shared memory once for all of them, the few keys of a beam's own codes are
// read by the beam. Where the blocks are few, those of a cluster share out the keys and add up what they find
// through their shared memory.
#include <algorithm>

#include "hstu/attention/few_queries/beams.cuh"
#include "hstu/attention/mma/instructions.cuh"
#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda/launch.cuh"

namespace hstu::cuda {
namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kStages = 3;  // of tiles of keys and values

// Of a tile. Thirteen warps have 128 registers a thread, too few for the scores of 64 keys.
template <int kWarps>
constexpr int kKeys = kWarps > 12 ? 32 : 64;

// Copies `rows` rows of kD elements, of which `there` exist; the others become zeros.
template <int kD, int kThreads>
__device__ __forceinline__ void copy_rows_to(std::uint32_t to, const AttentionInput& from, std::int64_t first,
                                             int head, int rows, int there) {
  constexpr int kPieces = kD / 8;
  const char* const data = static_cast<const char*>(from.data) + 2 * head * from.head_stride;
  for (int i = threadIdx.x; i < rows * kPieces; i += kThreads) {
    const int row = i / kPieces, piece = i % kPieces;
    const bool inside = row < there;
    copy_or_zero(to + row * (kD * 2) + ((piece ^ (row & 7)) * 16),
                 inside ? data + 2 * ((first + row) * from.row_stride + piece * 8) : data, inside ? 16 : 0);
  }
}

// A lane's part of two rows of a warp's sixteen, lane / 4 and that + 8: columns 8 j + 2 (lane % 4) and the
// next, as mma.sync leaves them.
template <int kD>
struct State {
  float sum[1][kD / 2];
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

// Begins with the keys of the beams' own codes.
template <int kD>
__device__ __forceinline__ void begin_with_codes(State<kD>& state, const BeamArguments<__nv_bfloat16>& a,
                                                 std::uint32_t q, const std::int64_t (&beam)[2], int head) {
  const int quad = threadIdx.x % 4, row = threadIdx.x % 32 / 4;
#pragma unroll 1
  for (int c = 0; c < a.codes; ++c) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t at = a.row_of(beam[half], c);
      const auto* const key = reinterpret_cast<const std::uint32_t*>(a.code_k[c].at(at, head)) + quad;
      const auto* const value = reinterpret_cast<const std::uint32_t*>(a.code_v[c].at(at, head)) + quad;
      float score = 0;
#pragma unroll
      for (int j = 0; j < kD / 8; ++j) {
        const std::uint32_t pair = load_shared(q + (row + 8 * half) * (kD * 2) + ((j ^ row) * 16) + quad * 4);
        const float2 x = unpack<__nv_bfloat16>(pair), y = unpack<__nv_bfloat16>(key[4 * j]);
        score = fmaf(x.x, y.x, fmaf(x.y, y.y, score));
      }
      score = quad_sum(score) * a.scale;
      const float most = fmaxf(state.largest[half], score);
      const float before = exp2f(state.largest[half] - most), weight = exp2f(score - most);
      state.largest[half] = most;
      state.weights[half] = state.weights[half] * before + weight;
#pragma unroll
      for (int j = 0; j < kD / 8; ++j) {
        const float2 y = unpack<__nv_bfloat16>(value[4 * j]);
        float* const sum = state.sum[0] + 4 * j + 2 * half;
        sum[0] = fmaf(weight, y.x, sum[0] * before);
        sum[1] = fmaf(weight, y.y, sum[1] * before);
      }
    }
  }
}

__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// A tile of keys, of which `there` exist.
template <int kKeys, int kD>
__device__ __forceinline__ void add_tile(State<kD>& state, std::uint32_t q, std::uint32_t k, std::uint32_t v,
                                         float scale, int there) {
  float s[1][kKeys / 2];
  multiply_rows<__nv_bfloat16, kD, 1>(s, q, 0, k, 0);
  float most[2] = {-INFINITY, -INFINITY};
#pragma unroll
  for (int i = 0; i < kKeys / 2; ++i) {
    if (there < kKeys && i / 4 * 8 + static_cast<int>(threadIdx.x % 4) * 2 + i % 2 >= there)
      s[0][i] = -INFINITY;
    most[i / 2 % 2] = fmaxf(most[i / 2 % 2], s[0][i]);
  }
  float before[2], shift[2], weights[2] = {0, 0};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float largest = fmaxf(state.largest[half], quad_greatest(most[half]) * scale);
    before[half] = exp2f(state.largest[half] - largest);  // 0 at first
    state.largest[half] = shift[half] = largest;
  }
  std::uint32_t packed[1][kKeys / 4];
#pragma unroll
  for (int i = 0; i < kKeys / 4; ++i) {
    const float x = fast_exp2(fmaf(s[0][2 * i], scale, -shift[i % 2])),
                y = fast_exp2(fmaf(s[0][2 * i + 1], scale, -shift[i % 2]));
    weights[i % 2] += x + y;
    packed[0][i] = pack<__nv_bfloat16>(x, y);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half)
    state.weights[half] = state.weights[half] * before[half] + quad_sum(weights[half]);
#pragma unroll
  for (int i = 0; i < kD / 2; ++i) state.sum[0][i] *= before[i / 2 % 2];
  add_weighted<__nv_bfloat16, kD, 1>(state.sum, packed, v, 0);
}

__device__ __forceinline__ float load_of_peer(std::uint32_t address) {
  float x;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(address) : "memory");
  return x;
}
__device__ __forceinline__ float4 load_quad_of_peer(std::uint32_t address) {
  float4 x;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "r"(address)
               : "memory");
  return x;
}

// Rows of sums that the blocks of a cluster leave for each other: kD, then the largest score and the weights.
template <int kD>
inline constexpr int kSumStride = kD + 8;  // floats

template <int kWarps, int kD>
constexpr int shared_bytes(bool split) {
  const int stages = kStages * 2 * kKeys<kWarps> * kD * 2, rows = 16 * kWarps;
  return rows * kD * 2 + std::max(stages, split ? rows * kSumStride<kD> * 4 : 0) + 128;
}

// Adds up the sums of the cluster's blocks; each takes some of the rows.
template <int kWarps, int kD>
__device__ void merge(const State<kD>& state, const BeamArguments<__nv_bfloat16>& a, std::uint32_t sums,
                      std::int64_t first_beam, int rows, int head) {
  constexpr int kStride = kSumStride<kD> * 4;
  const int lane = threadIdx.x % 32, row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
  __syncthreads();  // the last tile has been read
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t to = sums + (row + 8 * half) * kStride;
#pragma unroll
    for (int j = 0; j < kD / 8; ++j)
      store_shared_pair(to + (8 * j + lane % 4 * 2) * 4, state.sum[0][4 * j + 2 * half],
                        state.sum[0][4 * j + 2 * half + 1]);
    if (lane % 4 == 0) store_shared_pair(to + kD * 4, state.largest[half], state.weights[half]);
  }
  cluster_barrier();
  const int rank = static_cast<int>(cluster_rank());
  constexpr int kPieces = kD / 4;
  for (int i = threadIdx.x; i < 16 * kWarps * kPieces / a.splits; i += 32 * kWarps) {
    const int r = i / kPieces * a.splits + rank, piece = i % kPieces;
    if (r >= rows) continue;
    float largest = -INFINITY, weights = 0;
    for (int peer = 0; peer < a.splits; ++peer)
      largest = fmaxf(largest, load_of_peer(peer_address(sums + r * kStride + kD * 4, peer)));
    float4 sum{0, 0, 0, 0};
    for (int peer = 0; peer < a.splits; ++peer) {
      const std::uint32_t from = peer_address(sums + r * kStride, peer);
      const float factor = exp2f(load_of_peer(from + kD * 4) - largest);
      const float4 x = load_quad_of_peer(from + piece * 16);
      weights = fmaf(factor, load_of_peer(from + kD * 4 + 4), weights);
      sum.x = fmaf(factor, x.x, sum.x), sum.y = fmaf(factor, x.y, sum.y);
      sum.z = fmaf(factor, x.z, sum.z), sum.w = fmaf(factor, x.w, sum.w);
    }
    const float all = 1.0f / weights;
    *reinterpret_cast<uint2*>(a.o.at(first_beam + r, head) + piece * 4) = {
        pack<__nv_bfloat16>(sum.x * all, sum.y * all), pack<__nv_bfloat16>(sum.z * all, sum.w * all)};
  }
  cluster_barrier();  // until the others have read this block's sums
}

template <int kWarps, int kD>
__global__ void __launch_bounds__(32 * kWarps, kWarps <= 4 ? 3 : 1)
    beams_mma(const __grid_constant__ BeamArguments<__nv_bfloat16> a) {
  constexpr int kRows = 16 * kWarps, kThreads = 32 * kWarps, kTile = kKeys<kWarps>,
                kTileBytes = kTile * kD * 2;
  extern __shared__ char memory[];
  const std::uint32_t q = (shared_address(memory) + 127) & ~127u, stages = q + kRows * kD * 2;
  const int split = static_cast<int>(blockIdx.x) % a.splits, tile = static_cast<int>(blockIdx.x) / a.splits;
  const int head = blockIdx.y, first = tile * kRows;
  const int rows = min(kRows, static_cast<int>(a.beams) - first);
  const std::int64_t first_beam = blockIdx.z * a.beams + first;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  let_next_launch_begin();
  wait_for_previous_launch();
  const std::int64_t begin = a.offsets[blockIdx.z];
  const int keys = static_cast<int>(a.offsets[blockIdx.z + 1] - begin);
  const int tiles = (keys + kTile - 1) / kTile, each = (tiles + a.splits - 1) / a.splits;
  const int from = split * each, end = min(from + each, tiles);
  const auto copy_tile = [&](int t) {
    if (t < end) {
      const std::uint32_t to = stages + (t - from) % kStages * (2 * kTileBytes);
      copy_rows_to<kD, kThreads>(to, a.k_rows, begin + t * kTile, head, kTile, keys - t * kTile);
      copy_rows_to<kD, kThreads>(to + kTileBytes, a.v_rows, begin + t * kTile, head, kTile, keys - t * kTile);
    }
    commit_copies();
  };
  copy_rows_to<kD, kThreads>(q, a.q_rows, first_beam, head, kRows, rows);
  commit_copies();
  copy_tile(from);
  copy_tile(from + 1);

  State<kD> state;
#pragma unroll
  for (int i = 0; i < kD / 2; ++i) state.sum[0][i] = 0;
  state.largest[0] = state.largest[1] = -INFINITY;
  state.weights[0] = state.weights[1] = 0;
  wait_for_copy_groups<kStages - 1>();
  __syncthreads();
  const std::uint32_t own = q + warp * (16 * kD * 2);
  if (split == 0) {
    const std::int64_t beam[2] = {first_beam + min(warp * 16 + lane / 4, rows - 1),
                                  first_beam + min(warp * 16 + lane / 4 + 8, rows - 1)};
    begin_with_codes<kD>(state, a, own, beam, head);
  }
  const std::uint32_t own_lane = lane_by_rows<kD>(own);
  for (int t = from; t < end; ++t) {
    wait_for_copy_groups<kStages - 2>();
    __syncthreads();
    copy_tile(t + kStages - 1);
    const std::uint32_t at = stages + (t - from) % kStages * (2 * kTileBytes);
    add_tile<kTile>(state, own_lane, lane_by_pieces<kD>(at), lane_by_rows<kD>(at + kTileBytes), a.scale,
                    keys - t * kTile);
  }
  wait_for_copies();
  if (a.splits > 1) return merge<kWarps, kD>(state, a, stages, first_beam, rows, head);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = warp * 16 + lane / 4 + 8 * half;
    if (row >= rows) continue;
    const float all = 1.0f / state.weights[half];
    auto* const to = reinterpret_cast<std::uint32_t*>(a.o.at(first_beam + row, head)) + lane % 4;
#pragma unroll
    for (int j = 0; j < kD / 8; ++j)
      to[4 * j] =
          pack<__nv_bfloat16>(state.sum[0][4 * j + 2 * half] * all, state.sum[0][4 * j + 2 * half + 1] * all);
  }
}

template <int kWarps, int kD>
void launch_mma(const BeamAttention& p, int splits, const AttentionRows& o, cudaStream_t stream) {
  constexpr int kRows = 16 * kWarps;
  BeamArguments<__nv_bfloat16> a = beam_arguments<__nv_bfloat16>(p, o);
  a.splits = splits;
  const auto tiles = static_cast<unsigned>((p.beams + kRows - 1) / kRows);
  launch_grid(beams_mma<kWarps, kD>, a,
              dim3(tiles * static_cast<unsigned>(splits), static_cast<unsigned>(p.heads),
                   static_cast<unsigned>(p.users)),
              splits, 32 * kWarps, shared_bytes<kWarps, kD>(kWarps == 4), stream, kBeamsWhat);
}

// One wave of large blocks, or small ones of which several share a user's keys.
template <int kD>
void launch_by_size(const BeamAttention& p, const AttentionRows& o, cudaStream_t stream) {
  const std::int64_t multiprocessors = current_device_attribute(cudaDevAttrMultiProcessorCount, kBeamsWhat);
  const std::int64_t pairs = p.users * p.heads;
  if (pairs * 2 > multiprocessors && p.beams > 112) return launch_mma<13, kD>(p, 1, o, stream);
  const std::int64_t blocks = pairs * ((p.beams + 63) / 64);
  int splits = 1;
  while (splits < 8 && blocks * splits * 2 <= multiprocessors && p.tokens > p.users * kKeys<4> * splits)
    splits *= 2;
  launch_mma<4, kD>(p, splits, o, stream);
}

}  // namespace

void beam_attention_sm90(const BeamAttention& p, const AttentionRows& o, cudaStream_t stream) {
  if (p.head_dim == 64) return launch_by_size<64>(p, o, stream);
  launch_by_size<128>(p, o, stream);
}

}  // namespace hstu::cuda
