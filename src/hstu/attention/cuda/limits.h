// Limits of the kernels, which checks.h and choose_attention respect.
#pragma once

#include <cstdint>

namespace hstu::cuda {

inline constexpr std::int64_t kPlainHeadDim = 256;
inline constexpr std::int64_t kMostBuckets = 65535;      // thresholds of a time table
inline constexpr std::int64_t kTensorBuckets = 255;      // thresholds in kernels for tensor cores
inline constexpr std::int64_t kSoftmaxTensorHead = 128;  // largest head size of a softmax on tensor cores
inline constexpr int kTileBits = 20;  // of a tile's number in a schedule; the other 12 bits are its head
inline constexpr std::int64_t kMostHeads = 1 << (32 - kTileBits);
inline constexpr std::int64_t kLongestSample = 1 << 20;  // rows of a sample as the copy engine counts them

// The head sizes of the kernels for few queries: 32 to 256 in powers of two.
inline bool is_head_of_few_queries(std::int64_t head_dim) {
  return head_dim >= 32 && head_dim <= 256 && (head_dim & (head_dim - 1)) == 0;
}

}  // namespace hstu::cuda
