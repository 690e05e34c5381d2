// A block has 64 queries of a sample for each warpgroup, and one head. The keys pass through shared memory
// once for all of them: first those of the past, page by page, then the sample's own. Where the blocks are
// few, those of a cluster share out the keys and add up their sums through their shared memory, in the order
// of the blocks.
#include <algorithm>
#include <array>

#include "hstu/attention/few_queries/queries.h"
#include "hstu/attention/plain/place.cuh"
#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/mma.cuh"
#include "hstu/device/cuda/wgmma.cuh"

namespace hstu::cuda {
namespace {

using Element = __nv_bfloat16;

constexpr const char* kWhat = "attention of queries, forward";
constexpr int kKeys = 64;   // of a tile
constexpr int kStages = 2;  // of tiles of keys and values
constexpr int kMostSplits = 16;
constexpr int kRowBytes = 128;  // of 64 elements, in the 128-byte swizzle

struct QueryArguments {
  Samples samples;
  const std::int64_t* query_offsets;
  AttentionInput q, k, v;
  AttentionRows o;
  CachedKeys past;
  float half_alpha;
  int splits;
};

// The tile of a block: `rows` queries of a sample, the first of which is its token `token` of those in this
// pass, and row `query` of q.
struct QueryTile {
  bool found;
  int sample, token, rows;
  std::int64_t query, first_token;
  SampleMask mask;
};

// Sample s has the blocks from query_offsets[s] / kRows + s on (plain/place.cuh).
template <int kRows, int kThreads>
__device__ QueryTile find_tile(const QueryArguments& a, std::int64_t block) {
  QueryTile tile{};
  const Samples& s = a.samples;
  int sample = 0;
  for (int left = s.count, step = 0; step != 1; left = step) {
    step = (left + kThreads - 1) / kThreads;
    const int ahead = static_cast<int>(threadIdx.x) * step;
    const bool begun = ahead < left && sample + ahead < s.count &&
                       first_block<kRows>(a.query_offsets, sample + ahead) <= block;
    const int count = __syncthreads_count(begun);
    if (count == 0) return tile;
    sample += (count - 1) * step;
  }
  const std::int64_t keys = s.offsets[sample], queries = a.query_offsets[sample],
                     first = (block - first_block<kRows>(a.query_offsets, sample)) * kRows;
  const int n = static_cast<int>(s.offsets[sample + 1] - keys),
            n_queries = static_cast<int>(a.query_offsets[sample + 1] - queries);
  tile.found = n_queries <= n && first < n_queries;
  tile.sample = sample;
  tile.token = n - n_queries + static_cast<int>(first);
  tile.rows = min(kRows, n_queries - static_cast<int>(first));
  tile.query = queries + first;
  tile.first_token = keys;
  tile.mask = mask_of(s, sample, n);
  return tile;
}

// Where 16 bytes go of a row of a tile of kRows rows: boxes of 64 columns.
template <int kRows>
__device__ __forceinline__ std::uint32_t in_boxes(int row, int piece) {
  return static_cast<std::uint32_t>((piece / 8 * kRows + row) * kRowBytes + ((piece % 8 ^ (row & 7)) * 16));
}

template <int kD, int kRows, int kThreads>
__device__ __forceinline__ void copy_queries(std::uint32_t to, const AttentionInput& from, std::int64_t first,
                                             int head, int there) {
  constexpr int kPieces = kD / 8;
  const char* const data = static_cast<const char*>(from.data) + 2 * head * from.head_stride;
#pragma unroll 1
  for (int n = 0; n < kRows * kPieces / kThreads; ++n) {
    const int i = static_cast<int>(threadIdx.x) + n * kThreads, row = i / kPieces, piece = i % kPieces;
    const bool inside = row < there;
    copy_or_zero(to + in_boxes<kRows>(row, piece),
                 inside ? data + 2 * ((first + row) * from.row_stride + piece * 8) : data, inside ? 16 : 0);
  }
}

// The keys and values of a sample, in tiles: those of its past, then its own.
struct KeyTiles {
  const std::int32_t* pages;
  int past, past_tiles;  // tokens, tiles
  std::int64_t first_token;
  int own;  // tokens

  template <int kD, int kThreads>
  __device__ __forceinline__ void copy_past(std::uint32_t to, const CachedKeys& from, int tile,
                                            int head) const {
    constexpr int kPieces = kD / 8;
    const int page_tokens = static_cast<int>(from.page_tokens);
#pragma unroll 4
    for (int n = 0; n < kKeys * kPieces / kThreads; ++n) {
      const int i = static_cast<int>(threadIdx.x) + n * kThreads, row = i / kPieces, piece = i % kPieces;
      const int token = tile * kKeys + row;
      const bool inside = token < past;
      const int page = inside ? token / page_tokens : 0;
      const std::int64_t at =
          (pages[page] * from.page_tokens + (inside ? token - page * page_tokens : 0)) * from.row_stride +
          head * from.head_stride + piece * 8;
      const std::uint32_t place = to + in_boxes<kKeys>(row, piece);
      copy_or_zero(place, static_cast<const char*>(from.k) + 2 * at, inside ? 16 : 0);
      copy_or_zero(place + kKeys * kD * 2, static_cast<const char*>(from.v) + 2 * at, inside ? 16 : 0);
    }
  }
  template <int kD, int kThreads>
  __device__ __forceinline__ void copy_own(std::uint32_t to, const AttentionInput& k, const AttentionInput& v,
                                           int block, int head) const {
    const int first = block * kKeys;
    copy_queries<kD, kKeys, kThreads>(to, k, first_token + first, head, own - first);
    copy_queries<kD, kKeys, kThreads>(to + kKeys * kD * 2, v, first_token + first, head, own - first);
  }
};

// silu(alpha s), where h = alpha s / 2.
__device__ __forceinline__ float silu_of_half(float h) {
  return fmaf(h, fast_tanh(h), h);
}

template <int kD>
inline constexpr int kSumStride = kD + 8;  // floats

template <int kGroups, int kD>
constexpr int shared_bytes() {
  const int rows = 64 * kGroups, stages = kStages * 2 * kKeys * kD * 2;
  return rows * kD * 2 + std::max(stages, rows * kSumStride<kD> * 4) + 1024;
}

// Adds up the sums of the cluster's blocks; each takes some of the rows.
template <int kGroups, int kD>
__device__ void merge(const float (&sum)[kD / 2], const QueryArguments& a, std::uint32_t sums, int row,
                      const QueryTile& tile, int head, float scale) {
  constexpr int kStride = kSumStride<kD> * 4, kPieces = kD / 4;
  const int lane = threadIdx.x % 32;
  __syncthreads();  // the last tile has been read
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int j = 0; j < kD / 8; ++j)
      store_shared_pair(sums + (row + 8 * half) * kStride + (8 * j + lane % 4 * 2) * 4, sum[4 * j + 2 * half],
                        sum[4 * j + 2 * half + 1]);
  cluster_barrier();
  const int rank = static_cast<int>(cluster_rank());
  for (int i = threadIdx.x; i < (64 * kGroups + a.splits - 1) / a.splits * kPieces; i += 128 * kGroups) {
    const int r = i / kPieces * a.splits + rank, piece = i % kPieces;
    if (r >= tile.rows) continue;
    float4 part[kMostSplits];
#pragma unroll
    for (int peer = 0; peer < kMostSplits; ++peer)
      if (peer < a.splits)
        part[peer] = load_quad_of_peer(peer_address(sums + r * kStride, static_cast<std::uint32_t>(peer)) +
                                       piece * 16);
    float4 all = part[0];
#pragma unroll
    for (int peer = 1; peer < kMostSplits; ++peer) {
      if (peer >= a.splits) continue;
      all.x += part[peer].x, all.y += part[peer].y, all.z += part[peer].z, all.w += part[peer].w;
    }
    auto* const to =
        static_cast<Element*>(a.o.data) + (tile.query + r) * a.o.row_stride + head * a.o.head_stride;
    *reinterpret_cast<uint2*>(to + piece * 4) = {pack<Element>(all.x * scale, all.y * scale),
                                                 pack<Element>(all.z * scale, all.w * scale)};
  }
  cluster_barrier();  // until the others have read this block's sums
}

template <int kGroups, int kD>
__global__ void __launch_bounds__(128 * kGroups, kGroups* kD <= 128 ? 2 : 1)
    queries_wgmma(const __grid_constant__ QueryArguments a) {
  constexpr int kRows = 64 * kGroups, kThreads = 128 * kGroups, kTileBytes = kKeys * kD * 2;
  extern __shared__ char memory[];
  const std::uint32_t q = (shared_address(memory) + 1023) & ~1023u, stages = q + kRows * kD * 2;
  const int split = static_cast<int>(blockIdx.x) % a.splits, head = blockIdx.y;
  let_next_launch_begin();
  wait_for_previous_launch();
  const QueryTile tile = find_tile<kRows, kThreads>(a, blockIdx.x / static_cast<unsigned>(a.splits));
  if (!tile.found) return;  // all blocks of the cluster alike
  const int past_of = a.past.k != nullptr ? a.past.past_of[tile.sample] : -1;
  KeyTiles keys{nullptr, 0, 0, tile.first_token, tile.mask.n};
  if (past_of >= 0) {
    keys.pages = a.past.pages + a.past.page_offsets[past_of];
    keys.past = static_cast<int>(a.past.lengths[past_of]);
    keys.past_tiles = (keys.past + kKeys - 1) / kKeys;
  }
  const Coverage seen = keys_of_queries(tile.mask, tile.token, tile.token + tile.rows);
  const BlockWalk own(seen.any, kKeys);
  const int steps = keys.past_tiles + own.count(), each = (steps + a.splits - 1) / a.splits;
  const int from = split * each, end = min(from + each, steps);
  const auto copy_tile = [&](int t) {
    if (t < end) {
      const std::uint32_t to = stages + (t - from) % kStages * (2 * kTileBytes);
      if (t < keys.past_tiles)
        keys.copy_past<kD, kThreads>(to, a.past, t, head);
      else
        keys.copy_own<kD, kThreads>(to, a.k, a.v, own[t - keys.past_tiles], head);
    }
    commit_copies();
  };
  copy_queries<kD, kRows, kThreads>(q, a.q, tile.query, head, tile.rows);
  commit_copies();
  copy_tile(from);

  const int lane = threadIdx.x % 32, own_row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
  float sum[kD / 2];
#pragma unroll
  for (float& x : sum) x = 0;
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
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i)
      packed[i] =
          pack<Element>(silu_of_half(s[2 * i] * a.half_alpha), silu_of_half(s[2 * i + 1] * a.half_alpha));
    if (t >= keys.past_tiles) {  // keys that are not there are zeros, and have the weight 0
      const int first = own[t - keys.past_tiles] * kKeys;
      if (first < seen.full_lo || first + kKeys > seen.full_hi) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const Intervals visible =
              keys_of_query(tile.mask, min(tile.token + own_row + 8 * half, tile.mask.n - 1));
#pragma unroll
          for (int i = 0; i < kKeys / 8; ++i) {
            const int key = first + 8 * i + lane % 4 * 2;
            std::uint32_t& pair = packed[2 * i + half];
            if (!visible.contains(key)) pair &= 0xffff0000u;
            if (!visible.contains(key + 1)) pair &= 0xffffu;
          }
        }
      }
    }
    const std::uint32_t values = contiguous_mn(tile_at + kTileBytes, kKeys * kRowBytes);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k)
      Wgmma<Element, kD>::template rs<1>(sum, packed + 4 * k, descriptor(values + k * 128), 1);
    wgmma_commit();
    wgmma_wait<0>();
  }
  wait_for_copies();
  const float scale =
      a.samples.common_scale * (a.samples.scale != nullptr ? a.samples.scale[tile.sample] : 1.0f);
  if (a.splits > 1) return merge<kGroups, kD>(sum, a, stages, own_row, tile, head, scale);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = own_row + 8 * half;
    if (row >= tile.rows) continue;
    auto* const to =
        reinterpret_cast<std::uint32_t*>(static_cast<Element*>(a.o.data) +
                                         (tile.query + row) * a.o.row_stride + head * a.o.head_stride) +
        lane % 4;
#pragma unroll
    for (int j = 0; j < kD / 8; ++j)
      to[4 * j] = pack<Element>(sum[4 * j + 2 * half] * scale, sum[4 * j + 2 * half + 1] * scale);
  }
}

// How many clusters of each number of blocks the GPU runs at once: fewer than its multiprocessors would hold,
// as a cluster is on one of their groups. [0] is unused.
template <int kGroups, int kD>
const std::array<int, kMostSplits + 1>& clusters_at_once() {
  static const auto counts = [] {
    const auto kernel = queries_wgmma<kGroups, kD>;
    constexpr int kBytes = shared_bytes<kGroups, kD>();
    allow_shared_memory(kernel, kBytes, kWhat);
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), kWhat);
    std::array<int, kMostSplits + 1> at_once{};
    for (unsigned size = 1; size <= kMostSplits; ++size) {
      cudaLaunchAttribute attribute{};
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim = {size, 1, 1};
      cudaLaunchConfig_t config{};
      config.gridDim = {size, 1, 1}, config.blockDim = {128 * kGroups, 1, 1};
      config.dynamicSmemBytes = kBytes;
      config.attrs = &attribute, config.numAttrs = 1;
      if (cudaOccupancyMaxActiveClusters(&at_once[size], kernel, &config) != cudaSuccess) {
        cudaGetLastError();  // no cluster of this size
        at_once[size] = 0;
      }
    }
    return at_once;
  }();
  return counts;
}

// The number of blocks that share out the keys of a tile, by which `tiles` of them are done first.
template <int kGroups, int kD>
int best_splits(std::int64_t tiles) {
  const std::array<int, kMostSplits + 1>& at_once = clusters_at_once<kGroups, kD>();
  int best = 1;
  double least = 0;
  for (int splits = 1; splits <= kMostSplits; ++splits) {
    const std::int64_t here = at_once[static_cast<std::size_t>(splits)];
    if (here == 0) continue;
    const double cost = static_cast<double>((tiles + here - 1) / here) / splits;
    if (splits == 1 || cost < 0.95 * least) best = splits, least = cost;
  }
  return best;
}

template <int kGroups, int kD>
void launch_wgmma(const AttentionProblem& p, std::int64_t tiles_of_all, const AttentionRows& o,
                  cudaStream_t stream) {
  const int splits = best_splits<kGroups, kD>(tiles_of_all);
  const QueryArguments a{.samples = samples_of(p),
                         .query_offsets = p.offsets_of_queries(),
                         .q = p.q,
                         .k = p.k,
                         .v = p.v,
                         .o = o,
                         .past = p.past,
                         .half_alpha = static_cast<float>(p.alpha / 2),
                         .splits = splits};
  const std::int64_t tiles = p.query_rows() / (64 * kGroups) + p.samples;
  launch_grid(queries_wgmma<kGroups, kD>, a,
              dim3(static_cast<unsigned>(tiles * splits), static_cast<unsigned>(p.heads)), splits,
              128 * kGroups, shared_bytes<kGroups, kD>(), stream, kWhat);
}

// Large blocks, or small ones of which several share a sample's keys.
template <int kD>
void launch_by_size(const AttentionProblem& p, const AttentionRows& o, cudaStream_t stream) {
  const std::int64_t multiprocessors = current_device_attribute(cudaDevAttrMultiProcessorCount, kWhat);
  // Of samples of equal length.
  const std::int64_t each = (p.query_rows() + p.samples - 1) / p.samples;
  const std::int64_t large = p.samples * ((each + 127) / 128) * p.heads,
                     small = p.samples * ((each + 63) / 64) * p.heads;
  if (each > 256 || (each > 64 && 2 * large >= multiprocessors))
    launch_wgmma<2, kD>(p, large, o, stream);
  else
    launch_wgmma<1, kD>(p, small, o, stream);
}

}  // namespace

void queries_forward(const AttentionProblem& p, const AttentionRows& o, cudaStream_t stream) {
  if (p.query_rows() == 0) return;
  if (p.head_dim == 64) return launch_by_size<64>(p, o, stream);
  if (p.head_dim == 128) return launch_by_size<128>(p, o, stream);
  launch_by_size<256>(p, o, stream);
}

}  // namespace hstu::cuda
