// Which pairs of an accumulator of scores (accumulator.cuh) dropout keeps. A call of Philox decides about a
// query and 8 neighbouring keys. The lanes that hold these pairs share out the calls, and exchange the bits.
#pragma once

#include <cstdint>

#include "hstu/attention/cuda/pair_dropout.h"
#include "hstu/attention/cuda/work.cuh"
#include "hstu/device/cuda/random.cuh"

namespace hstu::cuda {

// `row`: of the sample; one beyond its end has the name of the last.
__device__ __forceinline__ std::uint64_t dropout_name(const PairDropout& d, const Work& w, std::int32_t row) {
  const std::int64_t of_batch = static_cast<std::int64_t>(w.begin) + smaller(row, w.n - 1);
  return static_cast<std::uint64_t>(d.row_names != nullptr ? d.row_names[of_batch] : of_batch);
}

__device__ __forceinline__ std::uint64_t dropout_head_key(const PairDropout& d, std::int32_t head) {
  return mix64(d.key + static_cast<std::uint64_t>(head));
}

// Whether a row keeps keys 8 n to 8 n + 7, from the lowest bit on.
__device__ __forceinline__ std::uint32_t kept_keys(const PairDropout& d, std::uint64_t row_key,
                                                   std::uint32_t n) {
  std::uint32_t words[4], kept = 0;
  philox(row_key, n, 0, words);
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    kept |= (words[w] & 0xffff) >= d.threshold ? 1u << (2 * w) : 0u;
    kept |= (words[w] >> 16) >= d.threshold ? 2u << (2 * w) : 0u;
  }
  return kept;
}

// Queries as rows. Lane q of the four that share two rows draws for each the keys 8 (4 m + q) to 8 (4 m + q)
// + 7 of a block, into byte m.
class KeptOfQueries {
 public:
  // `query`: the thread's first row, of the sample; the second is 8 rows on.
  __device__ __forceinline__ void begin_rows(const PairDropout& d, const Work& w, std::int32_t query) {
#pragma unroll
    for (int r = 0; r < 2; ++r)
      keys_[r] = mix64(dropout_head_key(d, w.head) ^ dropout_name(d, w, query + 8 * r));
  }
  // N keys from token `key` on, a multiple of 8.
  template <int N>
  __device__ __forceinline__ void draw(const PairDropout& d, std::int32_t key) {
    bits_[0] = bits_[1] = 0;
    const std::uint32_t first = static_cast<std::uint32_t>(key) / 8 + threadIdx.x % 4;
#pragma unroll 1
    for (int m = 0; m < N / 32; ++m) {
#pragma unroll
      for (std::uint32_t r = 0; r < 2; ++r) bits_[r] |= kept_keys(d, keys_[r], first + 4 * m) << (8 * m);
    }
  }
  // Zeros in place of the weights of pairs that are not kept.
  template <int N>
  __device__ __forceinline__ void drop(float* s) const {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const std::uint32_t kept = __shfl_sync(0xffffffffu, bits_[r], q, 4) >> (threadIdx.x % 4 * 2);
#pragma unroll
        for (int m = 0; m < N / 32; ++m) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& x = s[4 * (4 * m + q) + 2 * r + e];
            x = (kept >> (8 * m + e) & 1) != 0 ? x : 0.0f;
          }
        }
      }
    }
  }

 private:
  std::uint64_t keys_[2];
  std::uint32_t bits_[2];
};

// Keys as rows, 64 queries as columns. Of the eight lanes that share columns lane p draws for the queries 8 p
// + 2 q and the next (q = lane % 4) the 16 keys of the warp: byte 2 hf + e is of query e and keys hf.
class KeptOfKeys {
 public:
  // The names are read before the draw, so that it need not wait for them. `query`: the first column.
  __device__ __forceinline__ KeptOfKeys(const PairDropout& d, const Work& w, std::int32_t query) {
    const std::int32_t lane = static_cast<std::int32_t>(threadIdx.x) % 32;
#pragma unroll
    for (int e = 0; e < 2; ++e) names_[e] = dropout_name(d, w, query + lane / 4 * 8 + lane % 4 * 2 + e);
  }
  // `key`: the warp's first row, a multiple of 8.
  __device__ __forceinline__ void draw(const PairDropout& d, std::int32_t head, std::int32_t key) {
    bits_ = 0;
    const std::uint64_t head_key = dropout_head_key(d, head);
    const std::uint32_t first = static_cast<std::uint32_t>(key) / 8;
#pragma unroll
    for (std::uint32_t e = 0; e < 2; ++e) {
      const std::uint64_t row_key = mix64(head_key ^ names_[e]);
#pragma unroll
      for (std::uint32_t hf = 0; hf < 2; ++hf)
        bits_ |= kept_keys(d, row_key, first + hf) << (8 * (2 * hf + e));
    }
  }
  // Of elements 4 j to 4 j + 3 of the accumulator: bits 0, 8, 16, 24.
  __device__ __forceinline__ std::uint32_t of_columns(int j) const {
    const std::uint32_t lane = threadIdx.x % 32;
    return __shfl_sync(0xffffffffu, bits_, static_cast<int>(4 * j + lane % 4)) >> (lane / 4);
  }

 private:
  std::uint64_t names_[2];
  std::uint32_t bits_;
};

}  // namespace hstu::cuda
