// Rows that one warp computes, eight columns a lane at a time, and sums over rows in a fixed order.
#pragma once

#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels::cuda {

inline constexpr std::int64_t kGroup = 8;  // columns of a lane at a time

__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
__device__ inline std::int64_t lane() {
  return threadIdx.x % 32;
}

// Elements [c, c + 8) of a row of `width`; zero beyond it. 16 bytes at a time where the address allows it.
template <typename N>
__device__ void load_group(const N* row, std::int64_t c, std::int64_t width, float (&x)[kGroup]) {
  const N* const at = row + c;
  if (c + kGroup <= width && reinterpret_cast<std::uintptr_t>(at) % 16 == 0) {
    constexpr int kWords = kGroup * sizeof(N) / 16;
    union {
      uint4 words[kWords];
      N elements[kGroup];
    } loaded;
#pragma unroll
    for (int i = 0; i < kWords; ++i) loaded.words[i] = reinterpret_cast<const uint4*>(at)[i];
#pragma unroll
    for (int i = 0; i < kGroup; ++i) x[i] = to_float(loaded.elements[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) x[i] = c + i < width ? to_float(at[i]) : 0.0f;
  }
}

// The same elements from x, or added to by x. Nothing is written beyond the row, or without a target.
template <typename N>
__device__ void put_group(const Target<N>& target, std::int64_t first, std::int64_t c, std::int64_t width,
                          float (&x)[kGroup]) {
  if (target.to == nullptr) return;
  N* const row = target.to + first;
  N* const at = row + c;
  if (target.accumulate) {
    float before[kGroup];
    load_group(row, c, width, before);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) x[i] += before[i];
  }
  if (c + kGroup <= width && reinterpret_cast<std::uintptr_t>(at) % 16 == 0) {
    constexpr int kWords = kGroup * sizeof(N) / 16;
    union {
      uint4 words[kWords];
      N elements[kGroup];
    } stored;
#pragma unroll
    for (int i = 0; i < kGroup; ++i) stored.elements[i] = from_float<N>(x[i]);
#pragma unroll
    for (int i = 0; i < kWords; ++i) reinterpret_cast<uint4*>(at)[i] = stored.words[i];
  } else {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      if (c + i < width) at[i] = from_float<N>(x[i]);
    }
  }
}

struct RowStatistics {
  float mean, rstd;
};

// Of x (width), in two passes; every lane of the warp gets them.
template <typename N>
__device__ RowStatistics row_statistics(const N* x, std::int64_t width, float epsilon) {
  float v[kGroup], sum = 0, squares = 0;
  for (std::int64_t c = kGroup * lane(); c < width; c += 32 * kGroup) {
    load_group(x, c, width, v);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) sum += v[i];
  }
  const float mean = warp_sum(sum) / static_cast<float>(width);
  for (std::int64_t c = kGroup * lane(); c < width; c += 32 * kGroup) {
    load_group(x, c, width, v);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const float d = c + i < width ? v[i] - mean : 0.0f;
      squares += d * d;
    }
  }
  return {mean, rsqrtf(warp_sum(squares) / static_cast<float>(width) + epsilon)};
}

// Calls body(row) with each warp of the block on a row of its own.
template <typename Body>
__global__ void __launch_bounds__(kThreads) each_row(std::int64_t rows, Body body) {
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (r < rows) body(r);
}
template <typename Body>
void for_each_row(std::int64_t rows, const Body& body, CudaStream stream) {
  if (rows > 0) each_row<<<blocks_for(rows, kWarps), kThreads, 0, stream.handle>>>(rows, body);
}

// Sums over rows for each column: of the weight's gradient, then of the bias's.
inline constexpr std::int64_t kSumBlocks = 1056;  // a constant, so that the sums are the same on every GPU
inline constexpr std::int64_t kSharedFloats = 12 * 1024;

// Where a warp keeps a column's sum: the columns of a lane are 32 apart, so that lanes use different banks.
__host__ __device__ inline std::int64_t sum_slot(std::int64_t column) {
  return column / 256 * 256 + column % kGroup * 32 + column % 256 / kGroup;
}
__host__ __device__ inline std::int64_t padded(std::int64_t width) {
  return (width + 255) / 256 * 256;
}

// partial (blocks, 2, width). body(row, sums) computes a row and adds to this warp's sums (2,
// pitch) at sum_slot, of which a lane touches its own columns alone; sums are null where none are wanted.
template <typename Body>
__global__ void __launch_bounds__(kThreads)
    each_row_with_sums(std::int64_t rows, std::int64_t width, std::int64_t pitch, Body body, float* partial) {
  extern __shared__ float shared[];
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32;
  float* const sums = partial == nullptr ? nullptr : shared + warp * 2 * pitch;
  if (sums != nullptr) {
    for (std::int64_t i = threadIdx.x; i < warps * 2 * pitch; i += blockDim.x) shared[i] = 0;
    __syncthreads();
  }
  for (std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * warps + warp; r < rows;
       r += static_cast<std::int64_t>(gridDim.x) * warps) {
    body(r, sums);
  }
  if (sums == nullptr) return;
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < 2 * width; i += blockDim.x) {
    float sum = 0;
    const std::int64_t slot = i < width ? sum_slot(i) : pitch + sum_slot(i - width);
    for (int w = 0; w < warps; ++w) sum += shared[w * 2 * pitch + slot];
    partial[blockIdx.x * 2 * width + i] = sum;
  }
}

// The blocks' sums, in ascending order, to first (width) and second (width).
static __global__ void add_blocks(std::int64_t blocks, std::int64_t width, const float* partial,
                                  Target<float> first, Target<float> second) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= 2 * width) return;
  float sum = 0;
  for (std::int64_t b = 0; b < blocks; ++b) sum += partial[b * 2 * width + c];
  const Target<float>& target = c < width ? first : second;
  if (target.to != nullptr) target.put(c < width ? c : c - width, sum);
}

template <typename Body>
void for_each_row_with_sums(std::int64_t rows, std::int64_t width, const Body& body, Target<float> first,
                            Target<float> second, CudaStream stream) {
  const std::int64_t pitch = padded(width);
  require(2 * pitch <= kSharedFloats, "a norm of {} elements is too wide for a GPU: at most {}", width,
          kSharedFloats / 2);
  const bool wanted = first.to != nullptr || second.to != nullptr;
  const std::int64_t warps =
      std::min<std::int64_t>(kWarps, kSharedFloats / std::max<std::int64_t>(1, 2 * pitch));
  const std::int64_t blocks = std::min(kSumBlocks, (rows + warps - 1) / warps);
  const Scratch<float> partial(stream, wanted ? 2 * blocks * width : 0);
  if (blocks > 0) {
    const auto bytes = static_cast<std::size_t>(wanted ? warps * 2 * pitch : 0) * sizeof(float);
    each_row_with_sums<<<static_cast<unsigned>(blocks), static_cast<unsigned>(32 * warps), bytes,
                         stream.handle>>>(rows, width, pitch, body, wanted ? partial.data() : nullptr);
  }
  if (wanted && width > 0) {
    add_blocks<<<blocks_for(2 * width, 64), 64, 0, stream.handle>>>(blocks, width, partial.data(), first,
                                                                    second);
  }
}

}  // namespace hstu::kernels::cuda
