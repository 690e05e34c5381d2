#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hstu/benchmark/cuda/fill_normal.h"
#include "hstu/device/cuda/check.h"

namespace hstu {
namespace {

template <typename T>
__global__ void fill_kernel(T* to, std::int64_t count) {
  constexpr std::uint64_t kSeed = 1;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    std::uint64_t z =
        (static_cast<std::uint64_t>(i) + 1) * 0x9E3779B97F4A7C15ull + kSeed * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    const float u = (static_cast<float>(static_cast<std::uint32_t>(z)) + 0.5f) * 2.3283064e-10f;
    const float v = static_cast<float>(static_cast<std::uint32_t>(z >> 32)) * 2.3283064e-10f;
    to[i] = static_cast<T>(sqrtf(-2 * logf(fminf(u, 1.0f))) * cospif(2 * v));
  }
}

template <typename T>
void fill(void* to, std::int64_t count, cudaStream_t stream) {
  fill_kernel<<<1056, 256, 0, stream>>>(static_cast<T*>(to), count);
  cuda::check_cuda(cudaGetLastError(), "filling the inputs of a benchmark");
}

}  // namespace

void fill_normal(AttentionType type, void* to, std::int64_t count, cudaStream_t stream) {
  if (type == AttentionType::bf16)
    fill<__nv_bfloat16>(to, count, stream);
  else if (type == AttentionType::fp16)
    fill<__half>(to, count, stream);
  else
    fill<float>(to, count, stream);
}

}  // namespace hstu
