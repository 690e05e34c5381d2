// A block has 64 queries of a sample for each warpgroup that computes, and one head. The keys pass through
// shared memory once for all of them: first those of the past, page by page, then the sample's own. A warp
// of one more warpgroup copies them, in boxes of the tensor copy engine, and begins with the past before the
// launch before has ended. Where the blocks are few, those of a cluster share out the keys and add up their
// sums through their shared memory, in the order of the blocks.
#include <algorithm>
#include <array>
#include <cmath>

#include "hstu/attention/few_queries/key_tiles_sm90.cuh"
#include "hstu/attention/few_queries/queries.h"
#include "hstu/device/cuda/cluster.cuh"
#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/tensor_map.h"
#include "hstu/device/cuda/wgmma.cuh"

namespace hstu::cuda {
namespace {

using Element = __nv_bfloat16;

constexpr const char* kWhat = "attention of queries, forward";
constexpr int kMostSplits = 16;

// silu(alpha s), where h = alpha s / 2.
__device__ __forceinline__ float silu_of_half(float h) {
  return fmaf(h, fast_tanh(h), h);
}

template <int kD>
inline constexpr int kSumStride = kD + 8;  // floats

// Tiles of keys or of values that are under way or in use.
template <int kGroups, int kD>
constexpr int kSlots = kGroups* kD > 256 || kGroups* kD <= 128 ? 5 : 6;

template <int kGroups, int kD>
constexpr int shared_bytes() {
  const int rows = 64 * kGroups, slots = kSlots<kGroups, kD> * kKeys * kD * 2;
  return rows * kD * 2 + std::max(slots, rows * kSumStride<kD> * 4) + 1024;
}

// Adds up the sums of the cluster's blocks; each takes some of the rows.
template <int kGroups, int kD>
__device__ void merge(const float (&sum)[kD / 2], const QueryArguments& a, std::uint32_t sums, int row,
                      const QueryTile& tile, int head, float scale) {
  constexpr int kStride = kSumStride<kD> * 4, kPieces = kD / 4;
  const int lane = threadIdx.x % 32;
  named_barrier(1, 128 * kGroups);  // the last tile has been read
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
  cluster_barrier_of_reads();  // until the others have read this block's sums
}

template <int kGroups, int kD>
__global__ void __launch_bounds__(128 * kGroups + 128, kGroups* kD == 64 ? 2 : 1)
    queries_wgmma(const __grid_constant__ QueryArguments a) {
  constexpr int kRows = 64 * kGroups, kConsumers = 128 * kGroups, kThreads = kConsumers + 128;
  constexpr int kHalf = kKeys * kD * 2, kCount = kSlots<kGroups, kD>;
  extern __shared__ char memory[];
  __shared__ std::uint64_t barriers[2 * kCount + 1];
  __shared__ alignas(16) char place_memory[sizeof(Place)];
  Place& place = *reinterpret_cast<Place*>(place_memory);
  const std::uint32_t q = (shared_address(memory) + 1023) & ~1023u, slots = q + kRows * kD * 2,
                      full = shared_address(barriers), empty = full + 8 * kCount, q_full = empty + 8 * kCount;
  const int split = static_cast<int>(blockIdx.x) % a.splits, head = blockIdx.y;
  let_next_launch_begin();
  if (threadIdx.x == kConsumers) {
    for (const CUtensorMap* map : {&a.q, &a.k, &a.v, &a.past_k, &a.past_v}) prefetch_map(map);
    for (int i = 0; i < kCount; ++i) {
      barrier_init(full + 8 * i, 1);
      barrier_init(empty + 8 * i, kConsumers / 32);
    }
    barrier_init(q_full, 1);
    barrier_init_fence();
  }
  if (a.past.k == nullptr) wait_for_previous_launch();  // with a past the lists are there (queries.h)
  {
    // The last rows of a sample, which may see the most keys, begin first.
    const QueryTile tile =
        find_tile<kRows, kThreads>(a, (gridDim.x - 1 - blockIdx.x) / static_cast<unsigned>(a.splits));
    if (!tile.found) return wait_for_previous_launch();  // all blocks of the cluster alike
    if (threadIdx.x == 0) place = Place(a, tile, split);
  }
  __syncthreads();
  const auto& [tile, keys, seen, from, end] = place;

  const int lane = threadIdx.x % 32, own_row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
  if (threadIdx.x >= kConsumers) {
    if constexpr (kGroups * kD > 256) give_registers<40>();
    if (threadIdx.x >= kConsumers + 32) return wait_for_previous_launch();
    PastRows rows(a, keys, from);
    const auto copy = [&](int i) {
      const int slot = i % kCount, round = i / kCount;
      if (round > 0) barrier_wait(empty + 8 * slot, (round - 1) & 1);
      copy_tile<kD>(slots + slot * kHalf, a, keys, rows, from + i / 2, head, i % 2 != 0, full + 8 * slot);
    };
    const int halves = 2 * (end - from);
    int next = 0;
    if (a.past.k != nullptr)
      for (const int known = min(2 * (keys.past_tiles - from), halves); next < min(known, kCount); ++next)
        copy(next);
    wait_for_previous_launch();
    if (halves > 0) {
      if (lane == 0) barrier_expect(q_full, kRows * kD * 2);
      for (int c = 0; lane == 0 && c < kD / 64; ++c)
        load_matrix_box(q + c * kRows * kRowBytes, &a.q, head * a.head_of_q + 64 * c,
                        static_cast<int>(tile.query), q_full);
      for (; next < halves; ++next) copy(next);
    }
    return;
  }
  if constexpr (kGroups * kD > 256) take_registers<232>();
  wait_for_previous_launch();
  float sum[kD / 2];
#pragma unroll
  for (float& x : sum) x = 0;
  if (from < end) {
    const std::uint32_t queries = contiguous_k(q + static_cast<int>(threadIdx.x) / 128 * 64 * kRowBytes);
    const auto wait = [&](int i) { barrier_wait(full + 8 * (i % kCount), i / kCount & 1); };
    const auto release = [&](int i) {
      if (lane == 0) barrier_arrive(empty + 8 * (i % kCount));
    };
    const auto multiply_keys = [&](float(&s)[kKeys / 2], int i) {
      wait(i);
      const std::uint32_t keys_at = contiguous_k(slots + i % kCount * kHalf);
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
    };
    const auto weights_of = [&](std::uint32_t(&packed)[kKeys / 4], const float(&s)[kKeys / 2], int t) {
#pragma unroll
      for (int i = 0; i < kKeys / 4; ++i)
        packed[i] =
            pack<Element>(silu_of_half(s[2 * i] * a.half_alpha), silu_of_half(s[2 * i + 1] * a.half_alpha));
      const int there = keys.there(t);
      if (keys.is_past(t)) {
        if (there == kKeys) return;
#pragma unroll
        for (int i = 0; i < kKeys / 4; ++i) {
          const int key = 8 * (i / 2) + lane % 4 * 2;
          if (key >= there) packed[i] &= 0xffff0000u;
          if (key + 1 >= there) packed[i] &= 0xffffu;
        }
        return;
      }
      const int first = keys.first(t);
      if (first >= seen.full_lo && first + kKeys <= seen.full_hi) return;
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
    };
    const auto multiply_values = [&](const std::uint32_t(&packed)[kKeys / 4], int i, int there) {
      wait(i);
      const std::uint32_t at = slots + i % kCount * kHalf;
      if (there < kKeys) clear_values<kD, kConsumers>(at, there);
      const std::uint32_t values = contiguous_mn(at, kKeys * kRowBytes);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < kKeys / 16; ++k)
        Wgmma<Element, kD>::template rs<1>(sum, packed + 4 * k, descriptor(values + k * 128), 1);
      wgmma_commit();
    };

    barrier_wait(q_full, 0);
    for (int t = from, i = 0; t < end; ++t, i += 2) {
      float s[kKeys / 2];
      multiply_keys(s, i);
      wgmma_wait<0>();
      release(i);
      std::uint32_t packed[kKeys / 4];
      weights_of(packed, s, t);
      multiply_values(packed, i + 1, keys.there(t));
      wgmma_wait<0>();
      release(i + 1);
    }
  }
  const float scale =
      a.samples.common_scale * (a.samples.scale != nullptr ? a.samples.scale[tile.sample] : 1.0f);
  if (a.splits > 1) return merge<kGroups, kD>(sum, a, slots, own_row, tile, head, scale);
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
      config.gridDim = {size, 1, 1}, config.blockDim = {128 * kGroups + 128, 1, 1};
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

struct Splits {
  int splits = 0;
  double cost = 0;
};

// Tiles of queries, and the tiles of keys that one of them sees: at most and on average.
struct TileWork {
  std::int64_t tiles, most_keys;
  double mean_keys;
};

// The number of blocks that share out the keys of a tile, by which all tiles are done first. In times of a
// tile of keys: what a block begins and ends with takes as long as some of them, and the sums of a cluster
// longer the more blocks it has.
template <int kGroups, int kD>
Splits best_splits(const TileWork& work) {
  constexpr double kBeginAndEnd = 1.5 * kGroups, kOfSplit = 0.35, kClearly = 0.95;
  const std::array<int, kMostSplits + 1>& at_once = clusters_at_once<kGroups, kD>();
  Splits best;
  for (int splits = 1; splits <= kMostSplits; ++splits) {
    const std::int64_t here = at_once[static_cast<std::size_t>(splits)];
    if (here == 0) continue;
    const double fixed = kBeginAndEnd + kOfSplit * splits, mean = fixed + work.mean_keys / splits,
                 longest = fixed + static_cast<double>(work.most_keys) / splits,
                 rounds = static_cast<double>(work.tiles) / static_cast<double>(here);
    // Tiles of equal work are done in whole rounds; of others the longest begin first.
    const double cost = mean == longest ? std::ceil(rounds) * mean : std::max(longest, rounds * mean);
    if (splits == 1 || cost < kClearly * best.cost) best = {splits, cost};
  }
  return best;
}

template <int kGroups, int kD>
void launch_wgmma(const AttentionProblem& p, int splits, const AttentionRows& o, cudaStream_t stream) {
  const auto map_of = [&](const AttentionInput& rows, std::int64_t count, int box_rows) {
    return matrix_map(rows.data, count, (p.heads - 1) * rows.head_stride + kD, rows.row_stride, box_rows);
  };
  QueryArguments a{.q = map_of(p.q, p.query_rows(), 64 * kGroups),
                   .k = map_of(p.k, p.tokens, kKeys),
                   .v = map_of(p.v, p.tokens, kKeys),
                   .past_k = {},
                   .past_v = {},
                   .samples = samples_of(p),
                   .query_offsets = p.offsets_of_queries(),
                   .o = o,
                   .past = p.past,
                   .half_alpha = static_cast<float>(p.alpha / 2),
                   .splits = splits,
                   .box_rows = kKeys,
                   .page_tokens = static_cast<int>(p.past.page_tokens),
                   .head_of_q = static_cast<int>(p.q.head_stride),
                   .head_of_k = static_cast<int>(p.k.head_stride),
                   .head_of_v = static_cast<int>(p.v.head_stride),
                   .head_of_past = static_cast<int>(p.past.head_stride)};
  a.past_k = a.k, a.past_v = a.v;
  if (p.past.any()) {
    constexpr std::int64_t kAnyRows = std::int64_t{1} << 31;  // of pages, whose number is not known here
    while (a.page_tokens % a.box_rows != 0) a.box_rows /= 2;
    const auto of_pages = [&](const void* data) {
      return map_of({data, p.past.row_stride, p.past.head_stride}, kAnyRows, a.box_rows);
    };
    a.past_k = of_pages(p.past.k), a.past_v = of_pages(p.past.v);
  }
  const std::int64_t tiles = p.query_rows() / (64 * kGroups) + p.samples;
  launch_grid(queries_wgmma<kGroups, kD>, a,
              dim3(static_cast<unsigned>(tiles * splits), static_cast<unsigned>(p.heads)), splits,
              128 * kGroups + 128, shared_bytes<kGroups, kD>(), stream, kWhat);
}

// Blocks of 128 queries or of 64.
template <int kD>
void launch_by_size(const AttentionProblem& p, const AttentionRows& o, cudaStream_t stream) {
  constexpr std::int64_t kTilesOfPast = 64;  // the host does not know the lengths: as of 4,096 tokens
  const std::int64_t longest = p.longest > 0 ? p.longest : p.tokens,
                     most_keys = p.past.any() ? kTilesOfPast : (longest + kKeys - 1) / kKeys;
  // Where every token is a query, a row sees half of the keys on average.
  const bool is_whole = p.query_offsets == nullptr && !p.past.any() && p.mask.right == 0;
  const double mean_keys = static_cast<double>(most_keys) * (is_whole ? 0.5 : 1.0);
  // Of samples of equal length.
  const std::int64_t each = (p.query_rows() + p.samples - 1) / p.samples;
  const auto work_of = [&](std::int64_t rows) {
    return TileWork{p.samples * ((each + rows - 1) / rows) * p.heads, most_keys, mean_keys};
  };
  const Splits large = best_splits<2, kD>(work_of(128)), small = best_splits<1, kD>(work_of(64));
  if (large.cost <= small.cost)
    launch_wgmma<2, kD>(p, large.splits, o, stream);
  else
    launch_wgmma<1, kD>(p, small.splits, o, stream);
}

}  // namespace

void queries_forward(const AttentionProblem& p, const AttentionRows& o, cudaStream_t stream) {
  if (p.query_rows() == 0) return;
  if (p.head_dim == 64) return launch_by_size<64>(p, o, stream);
  if (p.head_dim == 128) return launch_by_size<128>(p, o, stream);
  launch_by_size<256>(p, o, stream);
}

}  // namespace hstu::cuda
