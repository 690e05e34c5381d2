#include <algorithm>
#include <cstdint>

#include <cuda_bf16.h>

#include "hstu/base/float16.h"
#include "hstu/comm/sum_terms.h"
#include "hstu/device/cuda/check.h"

namespace hstu::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 4096;

// What a thread adds at once: numbers at an address that is a multiple of their bytes.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T at[kCount];
};

// n: packs.
template <typename Sum, typename T, int kCount>
__global__ void add_up(const Pack<T, kCount>* terms, int count, std::int64_t n, const Pack<T, kCount>* last,
                       Pack<T, kCount>* sums) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
    Sum sum[kCount] = {};
    const auto add = [&](const Pack<T, kCount>& term) {
#pragma unroll
      for (int e = 0; e < kCount; ++e) sum[e] += static_cast<Sum>(term.at[e]);
    };
    for (int r = 0; r < count; ++r) add(terms[r * n + i]);
    if (last != nullptr) add(last[i]);
    Pack<T, kCount> rounded;
#pragma unroll
    for (int e = 0; e < kCount; ++e) rounded.at[e] = static_cast<T>(sum[e]);
    sums[i] = rounded;
  }
}

template <typename Sum, int kCount, typename T>
void launch_packs(const T* terms, int count, std::int64_t n, const T* last, T* sums, CUstream_st* stream) {
  using Packs = Pack<T, kCount>;
  const std::int64_t blocks = std::min((n / kCount + kThreads - 1) / kThreads, kMostBlocks);
  add_up<Sum, T, kCount><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      reinterpret_cast<const Packs*>(terms), count, n / kCount, reinterpret_cast<const Packs*>(last),
      reinterpret_cast<Packs*>(sums));
  check_cuda(cudaGetLastError(), "summing over ranks");
}

template <typename Sum, typename T>
void launch(const T* terms, int count, std::int64_t n, const T* last, T* sums, CUstream_st* stream) {
  if (n == 0) return;
  constexpr int kWhole = 16 / sizeof(T);
  const auto is_whole = [](const T* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; };
  if (n % kWhole == 0 && is_whole(terms) && is_whole(last) && is_whole(sums))
    launch_packs<Sum, kWhole>(terms, count, n, last, sums, stream);
  else
    launch_packs<Sum, 1>(terms, count, n, last, sums, stream);
}

}  // namespace

template <typename T>
void sum_terms(const T* terms, int count, std::int64_t n, const T* last, T* sums, CUstream_st* stream) {
  launch<T>(terms, count, n, last, sums, stream);
}

template <>
void sum_terms(const BFloat16* terms, int count, std::int64_t n, const BFloat16* last, BFloat16* sums,
               CUstream_st* stream) {
  launch<float>(reinterpret_cast<const __nv_bfloat16*>(terms), count, n,
                reinterpret_cast<const __nv_bfloat16*>(last), reinterpret_cast<__nv_bfloat16*>(sums), stream);
}

template void sum_terms(const float*, int, std::int64_t, const float*, float*, CUstream_st*);
template void sum_terms(const double*, int, std::int64_t, const double*, double*, CUstream_st*);
template void sum_terms(const std::int32_t*, int, std::int64_t, const std::int32_t*, std::int32_t*,
                        CUstream_st*);

}  // namespace hstu::cuda
