#include <algorithm>

#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda_calls.h"
#include "hstu/device/memory_pool.h"
#include "hstu/optimizer/dense_update.h"

namespace hstu::cuda {
namespace {

constexpr int kThreads = 256, kMostBlocks = 1024;
constexpr int kSumThreads = 1024;

__global__ void update(DenseUpdate u) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  update_elements(u, first, u.end, static_cast<std::int64_t>(gridDim.x) * blockDim.x);
}

__global__ void sum_of_squares(FloatList list, double* result) {
  __shared__ double sums[kSumThreads];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < list.size; i += kSumThreads)
    sum += static_cast<double>(list.values[i]) * static_cast<double>(list.values[i]);
  sums[threadIdx.x] = sum;
  for (int half = kSumThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *result = sums[0];
}

}  // namespace

void update_dense(std::span<const DenseUpdate> updates, CudaStream stream) {
  for (const DenseUpdate& u : updates) {
    if (u.end == 0) continue;
    const auto blocks =
        static_cast<int>(std::min<std::int64_t>(kMostBlocks, (u.end + kThreads - 1) / kThreads));
    update<<<blocks, kThreads, 0, stream.handle>>>(u);
  }
  check_cuda(cudaGetLastError(), "updating dense parameters");
}

void sums_of_squares(std::span<const FloatList> lists, std::span<double> sums, CudaStream stream) {
  const Buffer results = stream.memory->allocate(static_cast<std::int64_t>(lists.size() * sizeof(double)));
  auto* const result = reinterpret_cast<double*>(results.data());
  for (std::size_t i = 0; i < lists.size(); ++i)
    sum_of_squares<<<1, kSumThreads, 0, stream.handle>>>(lists[i], result + i);
  check_cuda(cudaGetLastError(), "summing squares of gradients");
  copy(sums.data(), result, lists.size() * sizeof(double), stream.handle);
  synchronize(stream.handle);
}

}  // namespace hstu::cuda
