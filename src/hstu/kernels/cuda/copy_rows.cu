#include "hstu/kernels/copy_rows.h"
#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels {
namespace {

using namespace cuda;

template <typename N>
__global__ void copy(std::int64_t rows, std::int64_t width, const N* x, std::int64_t x_stride,
                     const std::int32_t* from, const std::int64_t* to, N* y) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= rows * width) return;
  const std::int64_t i = at / width, c = at % width;
  y[to[i] * width + c] = x[from[i] * x_stride + c];
}

}  // namespace

template <typename T>
void copy_rows(const CopyRows<T>& p, CudaStream stream) {
  if (p.rows == 0) return;
  hstu::cuda::launch("copy of rows", copy<Native<T>>, blocks_for(p.rows * p.width, kThreads), kThreads,
                     stream.handle, p.rows, p.width, native(p.x), p.x_stride, p.from, p.to, native(p.y));
}

template void copy_rows(const CopyRows<float>&, CudaStream);
template void copy_rows(const CopyRows<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
