#include <algorithm>

#include "hstu/comm/sum_terms.h"
#include "hstu/device/cuda/check.h"

namespace hstu::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 2048;

__global__ void add_up(const float* terms, int count, std::int64_t n, float* sums) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
    float sum = 0;
    for (int r = 0; r < count; ++r) sum += terms[r * n + i];
    sums[i] = sum;
  }
}

}  // namespace

void sum_terms(const float* terms, int count, std::int64_t n, float* sums, CUstream_st* stream) {
  if (n == 0) return;
  const std::int64_t blocks = std::min((n + kThreads - 1) / kThreads, kMostBlocks);
  add_up<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(terms, count, n, sums);
  check_cuda(cudaGetLastError(), "summing over ranks");
}

}  // namespace hstu::cuda
