// Which rows a block of the plain kernels computes: a tile of neighbouring rows of one head of one sample.
// The host knows how many rows and samples there are, not how long each sample is.
#pragma once

#include "hstu/attention/cuda/samples.h"

namespace hstu::cuda {

inline constexpr int kPlainThreads = 256;

// Row first_row + i, of `count`, belongs to the sample's token from + i.
struct SampleRows {
  int first_row, from, count;
};

// The rows that are tokens of `x`, counted in `rows`.
__device__ inline Intervals rows_of_tokens(const Intervals& x, const SampleRows& rows) {
  const int from = rows.from, count = rows.count;
  return {smaller(x.end0 - from, count), larger(x.lo1 - from, 0), smaller(x.hi1 - from, count),
          larger(x.lo2 - from, 0), smaller(x.hi2 - from, count)};
}

struct PlainPlace {
  bool found;
  int sample;
  int begin;  // the tile's first row, of those of the sample
  SampleRows keys, queries;
  SampleMask mask;
  float scale;
};

// The mask of a sample of n tokens.
__device__ inline SampleMask mask_of(const Samples& s, int sample, int n) {
  const std::int32_t contexts = s.contexts != nullptr ? s.contexts[sample] : 0,
                     targets = s.targets != nullptr ? s.targets[sample] : 0;
  return sample_mask(n, contexts, targets, s.group, s.left, s.right);
}

// Sample s has the blocks from offsets[s] / kRows + s on: at least as many as it has tiles of kRows rows, and
// all samples together rows / kRows + samples.
template <int kRows>
__device__ std::int64_t first_block(const std::int64_t* offsets, int sample) {
  return offsets[sample] / kRows + sample;
}

// `offsets` divide the rows that the blocks share out: the keys or the queries. All threads call it and get
// the same.
template <int kRows>
__device__ PlainPlace plain_place(const Samples& s, const std::int64_t* query_offsets,
                                  const std::int64_t* offsets, bool of_keys) {
  PlainPlace place{};
  const std::int64_t block = blockIdx.x;
  int sample = 0;
  // Every thread compares one of as many samples, evenly spaced: one round for up to kPlainThreads samples.
  for (int left = s.count, step = 0; step != 1; left = step) {
    step = (left + kPlainThreads - 1) / kPlainThreads;
    const int ahead = static_cast<int>(threadIdx.x) * step;
    const bool begun =
        ahead < left && sample + ahead < s.count && first_block<kRows>(offsets, sample + ahead) <= block;
    const int count = __syncthreads_count(begun);
    if (count == 0) return place;
    sample += (count - 1) * step;
  }
  const std::int64_t keys = s.offsets[sample], keys_end = s.offsets[sample + 1],
                     queries = query_offsets[sample], queries_end = query_offsets[sample + 1],
                     tile = block - first_block<kRows>(offsets, sample);
  const float scale = s.scale != nullptr ? s.scale[sample] : 1.0f;
  const int n = static_cast<int>(keys_end - keys), n_queries = static_cast<int>(queries_end - queries);
  const int rows = of_keys ? n : n_queries;
  place.sample = sample;
  const int from = s.query_first != nullptr ? s.query_first[sample] : n - n_queries;
  // Queries that are not tokens are not valid.
  place.found = from >= 0 && from + n_queries <= n && tile * kRows < rows;
  place.begin = static_cast<int>(tile) * kRows;
  place.keys = {static_cast<int>(keys), 0, n};
  place.queries = {static_cast<int>(queries), from, n_queries};
  place.mask = mask_of(s, sample, n);
  place.scale = s.common_scale * scale;
  return place;
}

}  // namespace hstu::cuda
