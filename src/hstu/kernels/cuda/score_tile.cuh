// Scores of queries and items, tile by tile, on CUDA cores: each is one chain of fused multiply-adds in the
// order of elements (catalogue_scores.h).
#pragma once

#include "hstu/kernels/catalogue_scores.h"
#include "hstu/kernels/cuda/launch.cuh"

namespace hstu::kernels::cuda {

inline constexpr int kScoreTile = 128;  // queries, and items
inline constexpr int kScoreDepth = 16, kScoreStride = kScoreTile + 4;
inline constexpr int kScoreEach = 8;  // of both, for a thread

struct ScoreFactors {
  std::int64_t queries, items, width;
  const float *vectors, *rows;  // (queries, width), (items, width)
  bool quads;                   // four elements may be read at a time
};
inline ScoreFactors score_factors(const CatalogueItems& items, const float* vectors, std::int64_t queries) {
  const auto aligned = [](const float* x) { return reinterpret_cast<std::uintptr_t>(x) % 16 == 0; };
  return {queries, items.n,    items.width,
          vectors, items.rows, items.width % 4 == 0 && aligned(vectors) && aligned(items.rows)};
}

// A thread's part of 128 rows of kScoreDepth elements, on their way from global to shared memory.
struct ScoreRows {
  float x[kScoreDepth / 2];

  __device__ static int row() { return static_cast<int>(threadIdx.x) % kScoreTile; }
  __device__ static int depth() { return static_cast<int>(threadIdx.x) / kScoreTile * (kScoreDepth / 2); }
  __device__ void load(const float* rows, std::int64_t first, std::int64_t count, std::int64_t width,
                       std::int64_t from, bool quads) {
    const float* const at = rows + (first + row()) * width + from + depth();
    const std::int64_t left = first + row() < count ? width - from - depth() : 0;
#pragma unroll
    for (int i = 0; i < kScoreDepth / 2; i += 4) {
      if (quads) {
        const float4 four = i < left ? *reinterpret_cast<const float4*>(at + i) : float4{0, 0, 0, 0};
        x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
      } else {
#pragma unroll
        for (int j = i; j < i + 4; ++j) x[j] = j < left ? at[j] : 0.0f;
      }
    }
  }
  __device__ void store(float* tile) const {
#pragma unroll
    for (int i = 0; i < kScoreDepth / 2; ++i) tile[(depth() + i) * kScoreStride + row()] = x[i];
  }
};

// The scores of a thread: of queries query(i) and items item(j).
struct ScoresOfThread {
  float scores[kScoreEach][kScoreEach] = {};
  std::int64_t first_query, first_item;

  __device__ static int at(int block, int i) { return block * 4 + i % 4 + i / 4 * (kScoreTile / 2); }
  __device__ std::int64_t query(int i) const {
    return first_query + at(static_cast<int>(threadIdx.x) / 16, i);
  }
  __device__ std::int64_t item(int j) const { return first_item + at(static_cast<int>(threadIdx.x) % 16, j); }
  __device__ void add(const float* queries, const float* items) {
    float a[kScoreEach], b[kScoreEach];
#pragma unroll
    for (int i = 0; i < kScoreEach; i += 4) {
      *reinterpret_cast<float4*>(a + i) =
          *reinterpret_cast<const float4*>(queries + at(static_cast<int>(threadIdx.x) / 16, i));
      *reinterpret_cast<float4*>(b + i) =
          *reinterpret_cast<const float4*>(items + at(static_cast<int>(threadIdx.x) % 16, i));
    }
#pragma unroll
    for (int i = 0; i < kScoreEach; ++i) {
#pragma unroll
      for (int j = 0; j < kScoreEach; ++j) scores[i][j] = fmaf(a[i], b[j], scores[i][j]);
    }
  }
};

// Calls visit(const ScoresOfThread&) in all threads of a block; some queries and items are beyond the end.
template <typename Visit>
__global__ void __launch_bounds__(kThreads, 2) score_tiles(ScoreFactors f, Visit visit) {
  hstu::cuda::wait_for_previous_launch();
  __shared__ __align__(16) float memory[2][2][kScoreDepth * kScoreStride];
  ScoresOfThread t;
  t.first_item = std::int64_t{blockIdx.x} * kScoreTile, t.first_query = std::int64_t{blockIdx.y} * kScoreTile;
  ScoreRows queries, items;
  const auto load = [&](std::int64_t from) {
    queries.load(f.vectors, t.first_query, f.queries, f.width, from, f.quads);
    items.load(f.rows, t.first_item, f.items, f.width, from, f.quads);
  };
  const auto store = [&](int buffer) {
    queries.store(memory[buffer][0]);
    items.store(memory[buffer][1]);
  };
  load(0);
  store(0);
  __syncthreads();
  int buffer = 0;
  for (std::int64_t from = 0; from < f.width; from += kScoreDepth) {
    const bool more = from + kScoreDepth < f.width;
    if (more) load(from + kScoreDepth);
#pragma unroll
    for (int k = 0; k < kScoreDepth; ++k)
      t.add(memory[buffer][0] + k * kScoreStride, memory[buffer][1] + k * kScoreStride);
    buffer ^= 1;
    if (more) store(buffer);
    __syncthreads();
  }
  visit(t);
}

template <typename Visit>
void visit_scores(const char* what, const ScoreFactors& f, const Visit& visit, CudaStream stream) {
  if (f.queries == 0 || f.items == 0) return;
  const unsigned rows = blocks_for(f.queries, kScoreTile);
  require(rows < 65536, "{} queries are too many for one kernel", f.queries);
  hstu::cuda::launch(what, score_tiles<Visit>, dim3(blocks_for(f.items, kScoreTile), rows), kThreads,
                     stream.handle, f, visit);
}

// The score of one pair, with the bits of a tile's. quads: as in ScoreFactors.
__device__ inline float score_of(const float* a, const float* b, std::int64_t width, bool quads = false) {
  float sum = 0;
  if (quads) {
#pragma unroll 8
    for (std::int64_t e = 0; e < width; e += 4) {
      const float4 x = *reinterpret_cast<const float4*>(a + e), y = *reinterpret_cast<const float4*>(b + e);
      sum = fmaf(x.w, y.w, fmaf(x.z, y.z, fmaf(x.y, y.y, fmaf(x.x, y.x, sum))));
    }
  } else {
    for (std::int64_t e = 0; e < width; ++e) sum = fmaf(a[e], b[e], sum);
  }
  return sum;
}

// The number of ids below `id`.
__device__ inline std::int64_t ids_below(const std::int64_t* ids, std::int64_t n, std::int64_t id) {
  std::int64_t low = 0, high = n;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (ids[middle] < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace hstu::kernels::cuda
