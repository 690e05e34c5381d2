#include <algorithm>

#include <cuda_bf16.h>

#include "hstu/base/float16.h"
#include "hstu/comm/sum_terms.h"
#include "hstu/device/cuda/check.h"

namespace hstu::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 2048;

template <typename Sum, typename T>
__global__ void add_up(const T* terms, int count, std::int64_t n, T* sums) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
    Sum sum = 0;
    for (int r = 0; r < count; ++r) sum += static_cast<Sum>(terms[r * n + i]);
    sums[i] = static_cast<T>(sum);
  }
}

template <typename Sum, typename T>
void launch(const T* terms, int count, std::int64_t n, T* sums, CUstream_st* stream) {
  if (n == 0) return;
  const std::int64_t blocks = std::min((n + kThreads - 1) / kThreads, kMostBlocks);
  add_up<Sum><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(terms, count, n, sums);
  check_cuda(cudaGetLastError(), "summing over ranks");
}

}  // namespace

template <typename T>
void sum_terms(const T* terms, int count, std::int64_t n, T* sums, CUstream_st* stream) {
  launch<T>(terms, count, n, sums, stream);
}

template <>
void sum_terms(const BFloat16* terms, int count, std::int64_t n, BFloat16* sums, CUstream_st* stream) {
  launch<float>(reinterpret_cast<const __nv_bfloat16*>(terms), count, n,
                reinterpret_cast<__nv_bfloat16*>(sums), stream);
}

template void sum_terms(const float*, int, std::int64_t, float*, CUstream_st*);
template void sum_terms(const double*, int, std::int64_t, double*, CUstream_st*);
template void sum_terms(const std::int32_t*, int, std::int64_t, std::int32_t*, CUstream_st*);

}  // namespace hstu::cuda
