// kernels/dropout.h on a device: the same factors from the same numbers.
#pragma once

#include "hstu/device/cuda/random.cuh"
#include "hstu/kernels/dropout.h"
#include "hstu/kernels/dropout_rate.h"

namespace hstu::kernels::cuda {

class DropoutRows {
 public:
  explicit DropoutRows(const Dropout& dropout)
      : key_(dropout.key),
        row_names_(dropout.row_names),
        threshold_(dropout_threshold(dropout.rate)),
        factor_(static_cast<float>(kept_factor(threshold_))) {}

  // The same under another key.
  __device__ DropoutRows with_key(std::uint64_t key) const {
    DropoutRows other = *this;
    other.key_ = key;
    return other;
  }
  // The key of a row's factors.
  __device__ std::uint64_t row(std::int64_t r) const {
    return hstu::cuda::mix64(key_ ^ static_cast<std::uint64_t>(row_names_ != nullptr ? row_names_[r] : r));
  }
  // Whether columns `column` to `column` + 7 of the row with this key are kept, from the lowest bit on.
  // Cheaper by half where `column` is a multiple of 8.
  __device__ std::uint32_t kept(std::uint64_t row_key, std::int64_t column) const {
    if (threshold_ == 0) return 0xff;
    const auto n = static_cast<std::uint64_t>(column) / 8;
    const auto shift = static_cast<std::uint32_t>(column) % 8;
    std::uint32_t bits = kept_of(row_key, n);
    if (shift != 0) bits = (bits | kept_of(row_key, n + 1) << 8) >> shift & 0xff;
    return bits;
  }
  // The factor of a column that is kept, or not.
  __device__ float factor(bool kept) const { return kept ? factor_ : 0.0f; }
  // Of columns `column` to `column` + 7.
  __device__ void factors(std::uint64_t row_key, std::int64_t column, float (&out)[8]) const {
    if (column % 8 == 0) {
      std::uint32_t words[4] = {};
      if (threshold_ > 0) hstu::cuda::philox(row_key, static_cast<std::uint64_t>(column) / 8, 0, words);
#pragma unroll
      for (int w = 0; w < 4; ++w) {  // the halves of a word, compared where they are
        out[2 * w] = factor(words[w] << 16 >= threshold_ << 16);
        out[2 * w + 1] = factor(words[w] >= threshold_ << 16);
      }
      return;
    }
    const std::uint32_t bits = kept(row_key, column);
#pragma unroll
    for (int i = 0; i < 8; ++i) out[i] = factor(bits >> i & 1);
  }

 private:
  // Of columns 8 n to 8 n + 7.
  __device__ std::uint32_t kept_of(std::uint64_t row_key, std::uint64_t n) const {
    std::uint32_t words[4], kept = 0;
    hstu::cuda::philox(row_key, n, 0, words);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      kept |= (words[w] & 0xffff) >= threshold_ ? 1u << (2 * w) : 0u;
      kept |= (words[w] >> 16) >= threshold_ ? 2u << (2 * w) : 0u;
    }
    return kept;
  }

  std::uint64_t key_;
  const std::int64_t* row_names_;
  std::uint32_t threshold_;
  float factor_;
};

// Keys of the rows r, r - step, ... that the lanes of a warp compute together: each lane computes that of one
// of the next 32 rows, and all lanes take them in turn.
class RowKeys {
 public:
  __device__ RowKeys(std::uint32_t rows, std::uint32_t step) : rows_(rows), step_(step) {}

  // Of row `r`, `step` before that of the last call.
  __device__ std::uint64_t next(const DropoutRows& dropout, std::uint32_t r) {
    const std::uint32_t turn = turns_++ % 32;
    if (turn == 0) {
      const std::uint32_t own = r - threadIdx.x % 32 * step_;
      if (own < rows_) key_ = dropout.row(own);
    }
    return __shfl_sync(0xffffffffu, key_, static_cast<int>(turn));
  }

 private:
  std::uint32_t rows_, step_, turns_ = 0;
  std::uint64_t key_ = 0;
};

}  // namespace hstu::kernels::cuda
