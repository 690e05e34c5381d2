// Hidden keys (hidden_keys.h) in accumulators of scores (accumulator.cuh).
#pragma once

#include "hstu/attention/cuda/work.cuh"
#include "hstu/attention/hidden_keys.h"

namespace hstu::cuda {

// Whether token `query` is not of the period that token `key` begins.
__device__ __forceinline__ bool is_other_period(const HiddenKeys& hidden, std::int32_t query,
                                                std::int32_t key) {
  return static_cast<std::uint32_t>(query - key) >= static_cast<std::uint32_t>(hidden.period);
}

// How far a token is behind the last that begins a period.
__device__ __forceinline__ std::int32_t place_in_period(const HiddenKeys& hidden, std::int32_t contexts,
                                                        std::int32_t token) {
  const std::int32_t place = (token - contexts - hidden.phase) % hidden.period;
  return place < 0 ? place + hidden.period : place;
}

// Writes -infinity to the scores of the keys that are hidden from a query. Of the 64 x N accumulator the
// thread's first row is token `query`, and its first column token `base`.
template <int N>
__device__ __forceinline__ void hide_keys(float* s, const HiddenKeys& hidden, std::int32_t contexts,
                                          std::int32_t query, std::int32_t base) {
  std::int32_t place = place_in_period(hidden, contexts, base);
  const std::int32_t step = 8 % hidden.period;
#pragma unroll
  for (int j = 0; j < N / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const std::int32_t key = base + 8 * j + e;
      const bool hides = place == (e == 0 ? 0 : hidden.period - 1) && key >= contexts;
#pragma unroll
      for (int hf = 0; hf < 2; ++hf)
        if (hides && is_other_period(hidden, query + 8 * hf, key)) s[4 * j + 2 * hf + e] = -INFINITY;
    }
    place += step;
    if (place >= hidden.period) place -= hidden.period;
  }
}

// The same with keys as rows and queries as columns.
template <int N>
__device__ __forceinline__ void hide_key_rows(float* s, const HiddenKeys& hidden, std::int32_t contexts,
                                              std::int32_t key, std::int32_t base) {
#pragma unroll
  for (int hf = 0; hf < 2; ++hf) {
    const std::int32_t row = key + 8 * hf;
    if (row < contexts || place_in_period(hidden, contexts, row) != 0) continue;
#pragma unroll
    for (int i = 2 * hf; i < N / 2; i += 4)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        if (is_other_period(hidden, base + i / 4 * 8 + e, row)) s[i + e] = -INFINITY;
  }
}

}  // namespace hstu::cuda
