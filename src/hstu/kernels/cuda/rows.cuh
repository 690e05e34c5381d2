// Rows that one warp computes, and sums of columns over all rows in a fixed order.
#pragma once

#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels::cuda {

__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

// The row of this warp, and the lane within it.
__device__ inline std::int64_t warp_row() {
  return static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
}
__device__ inline std::int64_t lane() {
  return threadIdx.x % 32;
}

struct RowStatistics {
  float mean, rstd;
};

// Of x (width), in two passes; every lane of the warp gets them.
template <typename N>
__device__ RowStatistics row_statistics(const N* x, std::int64_t width, float epsilon) {
  float sum = 0;
  for (std::int64_t c = lane(); c < width; c += 32) sum += to_float(x[c]);
  const float mean = warp_sum(sum) / static_cast<float>(width);
  float squares = 0;
  for (std::int64_t c = lane(); c < width; c += 32) {
    const float d = to_float(x[c]) - mean;
    squares += d * d;
  }
  return {mean, rsqrtf(warp_sum(squares) / static_cast<float>(width) + epsilon)};
}

// Two sums for each column: of the weight's and of the bias's gradient.
struct Pair {
  float first = 0, second = 0;
};

inline constexpr std::int64_t kStrips = 256;  // of rows, at most

// partial (strips, 2, width): the sums over the rows of each strip of term(row, column).
template <typename Term>
__global__ void sum_strips(std::int64_t rows, std::int64_t width, std::int64_t strip, Term term,
                           float* partial) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= width) return;
  const std::int64_t begin = blockIdx.y * strip, end = min(rows, begin + strip);
  Pair sum;
  for (std::int64_t r = begin; r < end; ++r) {
    const Pair x = term(r, c);
    sum.first += x.first;
    sum.second += x.second;
  }
  partial[(2 * blockIdx.y) * width + c] = sum.first;
  partial[(2 * blockIdx.y + 1) * width + c] = sum.second;
}

// The strips' sums, in ascending order, to first (width) and second (width).
static __global__ void add_strips(std::int64_t strips, std::int64_t width, const float* partial,
                                  Target<float> first, Target<float> second) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= width) return;
  Pair sum;
  for (std::int64_t s = 0; s < strips; ++s) {
    sum.first += partial[(2 * s) * width + c];
    sum.second += partial[(2 * s + 1) * width + c];
  }
  if (first.to != nullptr) first.put(c, sum.first);
  if (second.to != nullptr) second.put(c, sum.second);
}

// The sums over rows of term(row, column), a Pair, to two gradients (width), of which either may be
// unwanted.
template <typename Term>
void sum_columns(std::int64_t rows, std::int64_t width, Target<float> first, Target<float> second,
                 const Term& term, CudaStream stream) {
  if ((first.to == nullptr && second.to == nullptr) || width == 0) return;
  constexpr int kColumns = 64;
  const std::int64_t strip = std::max<std::int64_t>(16, (rows + kStrips - 1) / kStrips);
  const std::int64_t strips = (rows + strip - 1) / strip;
  const Scratch<float> partial(stream, 2 * strips * width);
  const unsigned blocks = blocks_for(width, kColumns);
  if (strips > 0) {
    sum_strips<<<dim3(blocks, static_cast<unsigned>(strips)), kColumns, 0, stream.handle>>>(
        rows, width, strip, term, partial.data());
  }
  add_strips<<<blocks, kColumns, 0, stream.handle>>>(strips, width, partial.data(), first, second);
  check_launch("summing over rows");
}

}  // namespace hstu::kernels::cuda
