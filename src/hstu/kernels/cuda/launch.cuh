// How the kernels of this folder are launched, and where they take scratch memory from.
#pragma once

#include <cstdint>

#include "hstu/base/error.h"
#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/memory_pool.h"
#include "hstu/device/stream.h"

namespace hstu::kernels::cuda {

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;

// Blocks of `each` items for `n` of them.
inline unsigned blocks_for(std::int64_t n, std::int64_t each) {
  const std::int64_t blocks = (n + each - 1) / each;
  require(blocks < (std::int64_t{1} << 31), "{} items are too many for one kernel", n);
  return static_cast<unsigned>(blocks);
}

// For what is no launch of ours, such as a copy or a library's kernels.
inline cudaStream_t whole(CudaStream stream) {
  return stream.memory->stream().cuda();
}

// The one of list.each, list.count of them, that this block computes: each has `first`, its first block.
template <typename List>
__device__ const auto& of_block(const List& list) {
  int low = 0, high = list.count;  // each[low].first <= block < each[high].first
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (list.each[middle].first <= blockIdx.x ? low : high) = middle;
  }
  return list.each[low];
}

// Elements from the stream's pool, given back in stream order when the buffer ends.
template <typename T>
class Scratch {
 public:
  Scratch(CudaStream stream, std::int64_t elements)
      : buffer_(stream.memory->allocate(elements * static_cast<std::int64_t>(sizeof(T)))) {}
  T* data() const { return reinterpret_cast<T*>(buffer_.data()); }

 private:
  Buffer buffer_;
};

}  // namespace hstu::kernels::cuda
