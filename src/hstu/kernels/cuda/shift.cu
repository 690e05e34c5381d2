#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/shift.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

template <typename T>
__global__ void shift_each(Shift<T> p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  hstu::cuda::wait_for_previous_launch();
  if (i < p.size) p.y[i] = p.x[i] + p.by;
}

}  // namespace

template <typename T>
void shift(const Shift<T>& p, CudaStream stream) {
  if (p.size > 0)
    hstu::cuda::launch("shift", shift_each<T>, blocks_for(p.size, kThreads), kThreads, stream.handle, p);
}

template void shift(const Shift<std::int32_t>&, CudaStream);
template void shift(const Shift<std::int64_t>&, CudaStream);

}  // namespace hstu::kernels
