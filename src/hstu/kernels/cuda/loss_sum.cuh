// Sums of a loss over rows, in double and in a fixed order: many blocks, then one block over their sums.
#pragma once

#include <algorithm>

#include "hstu/kernels/cuda/launch.cuh"

namespace hstu::kernels::cuda {

inline constexpr std::int64_t kLossBlocks = 264;  // a constant, so that the sum is the same on every GPU

// The sum of the block's threads, by a tree; thread 0 gets it.
__device__ inline double block_sum(double mine) {
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = mine;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return sums[0];
}

template <typename Body>
__global__ void sum_block(std::int64_t rows, Body body, double* partial) {
  hstu::cuda::wait_for_previous_launch();
  double sum = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; r < rows; r += step)
    sum += body(r);
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

static __global__ void sum_partials(std::int64_t blocks, double factor, const double* partial, float* loss) {
  hstu::cuda::wait_for_previous_launch();
  double sum = 0;
  for (std::int64_t b = threadIdx.x; b < blocks; b += kThreads) sum += partial[b];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *loss = static_cast<float>(factor * sum);
}

// loss (1) = factor * the sum of body(row) over the rows.
template <typename Body>
void sum_losses(std::int64_t rows, double factor, const Body& body, float* loss, CudaStream stream) {
  const std::int64_t blocks = std::min(kLossBlocks, (rows + kThreads - 1) / kThreads);
  const Scratch<double> partial(stream, blocks);
  if (blocks > 0) {
    hstu::cuda::launch("loss", sum_block<Body>, static_cast<unsigned>(blocks), kThreads, stream.handle, rows,
                       body, partial.data());
  }
  hstu::cuda::launch("loss", sum_partials, 1, kThreads, stream.handle, blocks, factor, partial.data(), loss);
}

}  // namespace hstu::kernels::cuda
