#include "hstu/kernels/cast.h"
#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels {
namespace {

using namespace cuda;

template <typename N>
__global__ void cast_elements(std::int64_t size, const double* x, N* y) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= size) return;
  if constexpr (std::is_same_v<N, __nv_bfloat16>)
    y[i] = __double2bfloat16(x[i]);
  else
    y[i] = static_cast<N>(x[i]);
}

template <typename N>
__global__ void fill_elements(std::int64_t size, float value, N* y) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < size) y[i] = from_float<N>(value);
}

}  // namespace

template <typename T>
void fill(const Fill<T>& p, CudaStream stream) {
  if (p.size == 0) return;
  hstu::cuda::launch("fill", fill_elements<Native<T>>, blocks_for(p.size, kThreads), kThreads, stream.handle,
                     p.size, static_cast<float>(p.value), native(p.y));
}

template <typename T>
void cast(const Cast<T>& p, CudaStream stream) {
  if (p.size == 0) return;
  hstu::cuda::launch("cast", cast_elements<Native<T>>, blocks_for(p.size, kThreads), kThreads, stream.handle,
                     p.size, p.x, native(p.y));
}

template void fill(const Fill<float>&, CudaStream);
template void fill(const Fill<BFloat16>&, CudaStream);
template void cast(const Cast<float>&, CudaStream);
template void cast(const Cast<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
