// The first k items of queries, on GPUs: a block of threads for each query keeps those that can be among the
// first k. It gets the scores of all items; or, on Hopper and after the first items, those that bfloat16
// cannot rule out, whose scores it computes (top_filter.h).
#include <algorithm>

#include "hstu/device/cuda_calls.h"
#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/cuda/score_tile.cuh"
#include "hstu/kernels/cuda/top_filter.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

constexpr std::int64_t kTopScores = std::int64_t{1} << 23;  // of a launch: what the second cache holds
using Key = unsigned long long;
constexpr Key kNoKey = 0;

// Keys are larger the earlier the item comes: by score, and of equal scores by a smaller number. Not of NaN.
__device__ Key key_of_item(float score, std::int32_t item) {
  const float s = score + 0.0f;  // -0 becomes 0
  const unsigned bits = __float_as_uint(s), ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return static_cast<Key>(ordered) << 32 | (0xffffffffu - static_cast<unsigned>(item));
}
__device__ float score_of_key(Key key) {
  const auto ordered = static_cast<unsigned>(key >> 32);
  return __uint_as_float((ordered & 0x80000000u) != 0 ? ordered & 0x7fffffffu : ~ordered);
}
__device__ std::int32_t item_of_key(Key key) {
  return static_cast<std::int32_t>(0xffffffffu - static_cast<unsigned>(key));
}

// Sorts keys (size, a power of 2) in shared memory, the largest first.
__device__ void sort_keys_of_block(Key* keys, int size) {
  for (int length = 2; length <= size; length *= 2) {
    for (int step = length / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < size / 2; i += kThreads) {
        const int low = 2 * i - (i & (step - 1)), high = low + step;
        const bool down = (low & length) == 0;
        const Key a = keys[low], b = keys[high];
        if (a < b == down) keys[low] = b, keys[high] = a;
      }
    }
  }
  __syncthreads();
}

struct Excluded {
  const std::int64_t *ids, *begin, *end;  // ids: of the block's items
  __device__ bool has(std::int64_t at) const {
    const std::int64_t n = end - begin, i = n > 0 ? ids_below(begin, n, ids[at]) : 0;
    return i < n && begin[i] == ids[at];
  }
};

// The scores of all items of a block, row by row of the launch's queries.
struct AllScores {
  const float* scores;  // (queries of the launch, items)
  std::int64_t items;

  __device__ AllScores of_query(std::int64_t query) const { return {scores + query * items, items}; }
  __device__ std::int64_t count() const { return items; }
  __device__ std::int64_t item(std::int64_t i) const { return i; }
  __device__ float score(std::int64_t item) const { return scores[item]; }
};

// Those that the filter has found of a query, part after part, or all where they were too many for it. Every
// lane of a warp has the end of a part's candidates, counted from those of the first part.
struct FoundOfQuery {
  const std::int32_t* candidates;  // (parts, capacity)
  int end, all, capacity;
  bool has_all, quads;
  std::int64_t items, width;
  const float *vector, *rows;

  __device__ std::int64_t count() const { return has_all ? all : items; }
  // By all lanes of a warp, each its own i.
  __device__ std::int64_t item(std::int64_t i) const {
    if (!has_all) return i;
    int part = 0;  // those that end at or before i
#pragma unroll
    for (int step = kMostFilterParts / 2; step > 0; step /= 2)
      if (__shfl_sync(~0u, end, part + step - 1) <= i) part += step;
    const int begin = __shfl_sync(~0u, end, max(part - 1, 0));
    return candidates[part * capacity + i - (part > 0 ? begin : 0)];
  }
  __device__ float score(std::int64_t item) const {
    return score_of(vector, rows + item * width, width, quads);
  }
};
struct FoundScores {
  const std::int32_t *counts, *candidates;  // (queries of the launch, parts), (.., parts, capacity)
  int parts, capacity;
  std::int64_t items, width;
  const float *vectors, *rows;
  bool quads;

  __device__ FoundOfQuery of_query(std::int64_t query) const {
    const int count = lane() < parts ? counts[query * parts + lane()] : 0;
    int end = count;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int before = __shfl_up_sync(~0u, end, step);
      if (lane() >= step) end += before;
    }
    return {.candidates = candidates + query * parts * capacity,
            .end = end,
            .all = __shfl_sync(~0u, end, 31),
            .capacity = capacity,
            .has_all = __all_sync(~0u, count <= capacity) != 0,
            .quads = quads,
            .items = items,
            .width = width,
            .vector = vectors + query * width,
            .rows = rows};
  }
};
static_assert(kMostFilterParts == 32);  // lanes of a warp

// Of a launch: queries from `first` on.
struct ListChunk {
  TopBlock top;
  std::int64_t first;
  int capacity;  // of the list in shared memory
};

template <typename Scores>
__global__ void __launch_bounds__(kThreads) keep_first(const ListChunk chunk, const Scores all) {
  hstu::cuda::wait_for_previous_launch();
  extern __shared__ Key keys[];
  __shared__ int count;
  __shared__ Key least;  // what is smaller is not among the first k
  const TopBlock& p = chunk.top;
  const auto scores = all.of_query(blockIdx.x);
  const std::int64_t q = chunk.first + blockIdx.x, offered = scores.count();
  const int k = static_cast<int>(p.k);
  Excluded excluded{p.items.ids, nullptr, nullptr};
  if (p.queries.excluded_offsets != nullptr) {
    excluded.begin = p.queries.excluded + p.queries.excluded_offsets[q];
    excluded.end = p.queries.excluded + p.queries.excluded_offsets[q + 1];
  }
  Key* const kept = reinterpret_cast<Key*>(p.kept) + q * p.k;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  int filled = 0;
  for (int i = static_cast<int>(threadIdx.x); i < k; i += kThreads) {
    keys[i] = kept[i];
    filled += kept[i] != kNoKey ? 1 : 0;
  }
  filled = __reduce_add_sync(~0u, filled);
  if (threadIdx.x % 32 == 0) atomicAdd(&count, filled);
  __syncthreads();
  const bool was_full = count == k;
  if (threadIdx.x == 0) least = was_full ? keys[k - 1] : kNoKey;
  __syncthreads();
  const auto cut = [&] {
    const int held = count;
    int size = 64;
    while (size < held) size *= 2;
    for (int i = held + static_cast<int>(threadIdx.x); i < size; i += kThreads) keys[i] = kNoKey;
    sort_keys_of_block(keys, size);
    if (threadIdx.x == 0) {
      count = min(held, k);
      least = held >= k ? keys[k - 1] : kNoKey;
    }
    __syncthreads();
  };
  for (std::int64_t begin = 0; begin < offered; begin += kThreads) {
    Key key = kNoKey;
    const std::int64_t at = scores.item(min(begin + threadIdx.x, offered - 1));
    if (begin + threadIdx.x < offered) {
      const float score = scores.score(at);
      if (!isnan(score)) key = key_of_item(score, static_cast<std::int32_t>(p.first + at));
      if (key <= least || excluded.has(at)) key = kNoKey;
    }
    const unsigned takes = __ballot_sync(0xffffffffu, key != kNoKey);
    if (takes != 0) {
      int to = 0;
      if (threadIdx.x % 32 == 0) to = atomicAdd(&count, __popc(takes));
      to = __shfl_sync(0xffffffffu, to, 0) + __popc(takes & ((1u << threadIdx.x % 32) - 1));
      if (key != kNoKey) keys[to] = key;
    }
    // All threads see the same count between two barriers.
    __syncthreads();
    const bool full = count + kThreads > chunk.capacity;
    __syncthreads();
    if (full) cut();
  }
  if (!was_full || count > k) cut();
  for (int i = static_cast<int>(threadIdx.x); i < k; i += kThreads) kept[i] = i < count ? keys[i] : kNoKey;
}

// The smallest product in bfloat16 of an item that can have a score as high as the k-th kept: a number rounds
// by at most 2^-9 of itself, so a product of two rows by 2^-8 of their norms, and a little more; tensor cores
// add with fewer bits than floats have.
__global__ void find_thresholds(TopBlock p, std::int64_t first, std::int64_t count, const float* most_norm,
                                float* threshold) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t q = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32,
                     width = p.items.width;
  if (q >= count) return;
  const float* const x = p.queries.vectors + (first + q) * width;
  float squares = 0;
  for (std::int64_t e = lane(); e < width; e += 32) squares = fmaf(x[e], x[e], squares);
  squares = warp_sum(squares);
  const Key last = reinterpret_cast<const Key*>(p.kept)[(first + q) * p.k + p.k - 1];
  const float norms = 1.001f * sqrtf(squares) * *most_norm,
              error = norms * (0x1.02p-8f + 0x1p-20f * static_cast<float>(width)) + 1e-30f;
  if (lane() == 0) threshold[q] = last == kNoKey ? -INFINITY : score_of_key(last) - error;
}

// Rows in bfloat16, padded, and the largest of their norms.
__global__ void round_rows(std::int64_t rows, std::int64_t width, std::int64_t padded, const float* x,
                           __nv_bfloat16* to, float* most_norm) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (r >= rows) return;
  float squares = 0;
  for (std::int64_t e = lane(); e < padded; e += 32) {
    const float value = e < width ? x[r * width + e] : 0.0f;
    squares = fmaf(value, value, squares);
    to[r * padded + e] = __float2bfloat16(value);
  }
  squares = warp_sum(squares);
  // Of numbers that are not negative the bits have their order. NaN would rule nothing out.
  if (lane() == 0 && most_norm != nullptr && squares == squares)
    atomicMax(reinterpret_cast<unsigned*>(most_norm), __float_as_uint(sqrtf(squares)));
}

__global__ void read_kept(TopKept p) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= p.queries * p.k) return;
  const Key key = p.kept[i];
  p.items[i] = key == kNoKey ? -1 : item_of_key(key);
  p.scores[i] = key == kNoKey ? 0.0f : score_of_key(key);
}

struct WriteScores {
  std::int64_t queries, items;
  float* scores;  // (queries, items)

  __device__ void operator()(const ScoresOfThread& t) const {
#pragma unroll
    for (int i = 0; i < kScoreEach; ++i) {
      if (t.query(i) >= queries) continue;
#pragma unroll
      for (int j = 0; j < kScoreEach; ++j)
        if (t.item(j) < items) scores[t.query(i) * items + t.item(j)] = t.scores[i][j];
    }
  }
};

int list_capacity(std::int64_t k) {
  int capacity = 512;
  while (capacity < 2 * k + kThreads) capacity *= 2;
  return capacity;
}

template <typename Scores>
void keep(const TopBlock& p, std::int64_t first, std::int64_t count, const Scores& scores,
          CudaStream stream) {
  const ListChunk chunk{p, first, list_capacity(p.k)};
  const int bytes = chunk.capacity * static_cast<int>(sizeof(Key));
  hstu::cuda::allow_shared_memory(keep_first<Scores>,
                                  list_capacity(kMostTopItems) * static_cast<int>(sizeof(Key)), "top items");
  hstu::cuda::launch_as({.what = "top items",
                         .blocks = {static_cast<unsigned>(count), 1, 1},
                         .threads = {kThreads, 1, 1},
                         .shared_bytes = static_cast<unsigned>(bytes)},
                        keep_first<Scores>, stream.handle, chunk, scores);
}

void add_all(const TopBlock& p, CudaStream stream) {
  const std::int64_t each =
      std::clamp<std::int64_t>(kTopScores / p.items.n / kScoreTile * kScoreTile, kScoreTile,
                               std::max(p.queries.n, std::int64_t{kScoreTile}));
  const Scratch<float> scores(stream, std::min(each, p.queries.n) * p.items.n);
  for (std::int64_t first = 0; first < p.queries.n; first += each) {
    const std::int64_t n = std::min(each, p.queries.n - first);
    visit_scores("top items, scores", score_factors(p.items, p.queries.vectors + first * p.items.width, n),
                 WriteScores{n, p.items.n, scores.data()}, stream);
    keep(p, first, n, AllScores{scores.data(), p.items.n}, stream);
  }
}

constexpr std::int64_t kFirstItems = 8192;                   // of which all scores are computed
constexpr std::int64_t kCandidates = std::int64_t{1} << 25;  // that have room at a time

// A query's candidates of a part of the items: three times as many as are expected where all are in one part.
std::int64_t part_capacity(std::int64_t k) {
  return std::max<std::int64_t>(512, 3 * k);
}

// Of the queries [first, first + count).
void add_found(const TopBlock& p, std::int64_t first, std::int64_t count, CudaStream stream) {
  const std::int64_t padded = filter_width(p.items.width), width = p.items.width,
                     capacity = part_capacity(p.k),
                     parts = std::clamp<std::int64_t>(kCandidates / (count * capacity), 1,
                                                      filter_parts(count, p.items.n));
  const Scratch<BFloat16> vectors(stream, count * padded);
  const Scratch<float> threshold(stream, count);
  const Scratch<std::int32_t> counts(stream, count * parts), candidates(stream, count * parts * capacity);
  const float* const exact = p.queries.vectors + first * width;
  hstu::cuda::launch("top items, queries", round_rows, blocks_for(count, kWarps), kThreads, stream.handle,
                     count, width, padded, exact, native(vectors.data()), static_cast<float*>(nullptr));
  hstu::cuda::launch("top items, thresholds", find_thresholds, blocks_for(count, kWarps), kThreads,
                     stream.handle, p, first, count, p.items.most_norm, threshold.data());
  filter_top({.queries = count,
              .items = p.items.n,
              .padded = padded,
              .vectors = vectors.data(),
              .rows = p.items.rounded,
              .threshold = threshold.data(),
              .parts = parts,
              .capacity = capacity,
              .counts = counts.data(),
              .candidates = candidates.data()},
             stream);
  keep(p, first, count,
       FoundScores{counts.data(), candidates.data(), static_cast<int>(parts), static_cast<int>(capacity),
                   p.items.n, width, exact, p.items.rows, score_factors(p.items, exact, count).quads},
       stream);
}

void add_filtered(const TopBlock& p, CudaStream stream) {
  const std::int64_t each = kCandidates / part_capacity(p.k);
  for (std::int64_t first = 0; first < p.queries.n; first += each)
    add_found(p, first, std::min(each, p.queries.n - first), stream);
}

// The same with items [begin, end) of the block alone.
TopBlock part_of(const TopBlock& p, std::int64_t begin, std::int64_t end) {
  TopBlock part = p;
  part.items.n = end - begin;
  part.items.rows += begin * p.items.width;
  part.items.ids += begin;
  if (part.items.rounded != nullptr) part.items.rounded += begin * filter_width(p.items.width);
  part.first += begin;
  return part;
}

// As many items as came before have about as many among the first k as these.
void add_parts(const TopBlock& p, CudaStream stream) {
  std::int64_t begin = 0;
  while (begin < p.items.n) {
    const std::int64_t seen = p.first + begin,
                       most = p.items.rounded != nullptr ? std::max(kFirstItems, seen) : p.items.n,
                       end = std::min(p.items.n, begin + most);
    const TopBlock part = part_of(p, begin, end);
    if (p.items.rounded != nullptr && seen >= kFirstItems)
      add_filtered(part, stream);
    else
      add_all(part, stream);
    begin = end;
  }
}

}  // namespace

std::int64_t rounded_width(std::int64_t width, CudaStream) {
  return has_top_filter() ? filter_width(width) : 0;
}

void round_items(const CatalogueItems& items, BFloat16* rounded, float* most_norm, CudaStream stream) {
  hstu::cuda::set_zero(most_norm, sizeof(float), whole(stream));
  hstu::cuda::launch("top items, rows", round_rows, blocks_for(items.n, kWarps), kThreads, stream.handle,
                     items.n, items.width, filter_width(items.width), items.rows, native(rounded), most_norm);
}

void add_top_block(const TopBlock& p, CudaStream stream) {
  if (p.items.n == 0 || p.queries.n == 0) return;
  require(p.k >= 1 && p.k <= kMostTopItems, "expected 1 to {} items of each query, found {}", kMostTopItems,
          p.k);
  require(p.first + p.items.n < (std::int64_t{1} << 31), "a catalogue of {} items is too large for one GPU",
          p.first + p.items.n);
  const std::int64_t padded = rounded_width(p.items.width, stream);
  if (padded == 0 || p.items.rounded != nullptr) return add_parts(p, stream);
  const Scratch<BFloat16> rounded(stream, p.items.n * padded);
  const Scratch<float> most_norm(stream, 1);
  round_items(p.items, rounded.data(), most_norm.data(), stream);
  TopBlock with = p;
  with.items.rounded = rounded.data(), with.items.most_norm = most_norm.data();
  add_parts(with, stream);
}

void read_top(const TopKept& p, CudaStream stream) {
  if (p.queries > 0)
    hstu::cuda::launch("top items, read", read_kept, blocks_for(p.queries * p.k, kThreads), kThreads,
                       stream.handle, p);
}

}  // namespace hstu::kernels
