// What a block of queries_sm90.cu computes, and the copies of its keys.
#pragma once

#include "hstu/attention/cuda/samples.h"
#include "hstu/attention/plain/place.cuh"
#include "hstu/attention/problem.h"
#include "hstu/device/cuda/ptx.cuh"

namespace hstu::cuda {

inline constexpr int kKeys = 64;       // of a tile
inline constexpr int kRowBytes = 128;  // of 64 elements, in the 128-byte swizzle

struct QueryArguments {
  CUtensorMap q, k, v;         // of this pass
  CUtensorMap past_k, past_v;  // boxes of box_rows rows of the pages
  Samples samples;
  const std::int64_t* query_offsets;
  AttentionRows o;
  CachedKeys past;
  float half_alpha;
  int splits;
  int box_rows, page_tokens;
  int head_of_q, head_of_k, head_of_v, head_of_past;  // columns from one head to the next
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

// The keys of a sample in tiles: those of its past, then its own.
struct KeyTiles {
  const std::int32_t* pages;
  int past, past_tiles;  // tokens, tiles
  std::int64_t first_token;
  BlockWalk own;
  int n;  // own tokens

  __device__ __forceinline__ bool is_past(int t) const { return t < past_tiles; }
  // The first key of a tile among those of its kind.
  __device__ __forceinline__ int first(int t) const { return kKeys * (is_past(t) ? t : own[t - past_tiles]); }
  // The keys of a tile that are there; what shared memory has behind them is anything.
  __device__ __forceinline__ int there(int t) const { return min(kKeys, (is_past(t) ? past : n) - first(t)); }
};

// What a block computes: in shared memory, as it is read where few registers are left.
struct Place {
  QueryTile tile;
  KeyTiles keys;
  Coverage seen;
  int from, end;  // tiles of keys

  __device__ Place(const QueryArguments& a, const QueryTile& t, int split)
      : tile(t), seen(keys_of_queries(t.mask, t.token, t.token + t.rows)) {
    const int past_of = a.past.k != nullptr ? a.past.past_of[t.sample] : -1;
    keys = {nullptr, 0, 0, t.first_token, BlockWalk(seen.any, kKeys), t.mask.n};
    if (past_of >= 0) {
      keys.pages = a.past.pages + a.past.page_offsets[past_of];
      keys.past = static_cast<int>(a.past.lengths[past_of]);
      keys.past_tiles = (keys.past + kKeys - 1) / kKeys;
    }
    const int steps = keys.past_tiles + keys.own.count();
    from = steps * split / a.splits, end = steps * (split + 1) / a.splits;
  }
};

// The rows of a past's boxes, one after the other, for a warp: its lanes read the numbers of pages together.
class PastRows {
 public:
  __device__ PastRows(const QueryArguments& a, const KeyTiles& keys, int first_tile)
      : a_(a), keys_(keys), first_(first_tile * (kKeys / a.box_rows)) {}

  // Of box b of a tile, in ascending order; `again`: of a box that was asked for.
  __device__ int row(int t, int b, bool again) {
    const int box = t * (kKeys / a_.box_rows) + b, lane = (box - first_) % 32;
    if (lane == 0 && !again) {
      const int token = (box + static_cast<int>(threadIdx.x) % 32) * a_.box_rows,
                page = token / a_.page_tokens;
      if (token < keys_.past) row_ = keys_.pages[page] * a_.page_tokens + token - page * a_.page_tokens;
    }
    return __shfl_sync(0xffffffffu, row_, lane);
  }

 private:
  const QueryArguments& a_;
  const KeyTiles& keys_;
  int first_, row_ = 0;
};

// A warp copies the keys of a tile, or its values, in boxes of 64 columns.
template <int kD>
__device__ __forceinline__ void copy_tile(std::uint32_t to, const QueryArguments& a, const KeyTiles& keys,
                                          PastRows& rows, int t, int head, bool of_values,
                                          std::uint32_t full) {
  constexpr int kBoxBytes = kKeys * kRowBytes;
  const bool copies = threadIdx.x % 32 == 0;
  if (!keys.is_past(t)) {
    if (!copies) return;
    const CUtensorMap* const map = of_values ? &a.v : &a.k;
    const int column = head * (of_values ? a.head_of_v : a.head_of_k),
              row = static_cast<int>(keys.first_token) + keys.first(t);
    barrier_expect(full, kKeys * kD * 2);
#pragma unroll
    for (int c = 0; c < kD / 64; ++c) load_matrix_box(to + c * kBoxBytes, map, column + 64 * c, row, full);
    return;
  }
  const CUtensorMap* const map = of_values ? &a.past_v : &a.past_k;
  const int boxes = (keys.there(t) + a.box_rows - 1) / a.box_rows, column = head * a.head_of_past;
  if (copies) barrier_expect(full, static_cast<std::uint32_t>(boxes * a.box_rows * kD * 2));
  for (int b = 0; b < boxes; ++b) {
    const int row = rows.row(t, b, of_values);
    if (!copies) continue;
#pragma unroll
    for (int c = 0; c < kD / 64; ++c)
      load_matrix_box(to + c * kBoxBytes + b * a.box_rows * kRowBytes, map, column + 64 * c, row, full);
  }
}

// Zeros in place of the values from row `there` on: a weight of 0 times what is not a number would not be 0.
template <int kD, int kThreads>
__device__ __forceinline__ void clear_values(std::uint32_t values, int there) {
  for (int i = threadIdx.x; i < (kKeys - there) * kD / 8; i += kThreads) {
    const int row = there + i / (kD / 8), piece = i % (kD / 8);
    store_shared_quad(values + piece / 8 * kKeys * kRowBytes + row * kRowBytes + piece % 8 * 16, uint4{});
  }
  fence_async_proxy();
  named_barrier(1, kThreads);
}

}  // namespace hstu::cuda
