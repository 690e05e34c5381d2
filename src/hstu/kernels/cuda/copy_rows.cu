#include "hstu/kernels/copy_rows.h"
#include "hstu/kernels/cuda/numbers.cuh"
#include "hstu/kernels/cuda/units.cuh"

namespace hstu::kernels {
namespace {

using namespace cuda;

template <typename Unit>
__global__ void copy(std::int64_t rows, std::int64_t width, const Unit* x, std::int64_t x_stride,
                     const std::int32_t* from, const std::int64_t* to, Unit* y) {
  hstu::cuda::wait_for_previous_launch();
  copy_units<Unit>(
      blockIdx.x, rows, width,
      [&](std::int64_t i, std::int64_t column) { return x + from[i] * x_stride + column; },
      [&](std::int64_t i, std::int64_t column) { return y + to[i] * width + column; });
}

template <typename Unit, typename T>
void launch(const CopyRows<T>& p, CudaStream stream) {
  constexpr std::int64_t kElements = sizeof(Unit) / sizeof(T);
  const std::int64_t width = p.width / kElements;
  hstu::cuda::launch("copy of rows", copy<Unit>, blocks_for(p.rows * width, kUnitsOfBlock), kThreads,
                     stream.handle, p.rows, width, reinterpret_cast<const Unit*>(p.x), p.x_stride / kElements,
                     p.from, p.to, reinterpret_cast<Unit*>(p.y));
}

}  // namespace

template <typename T>
void copy_rows(const CopyRows<T>& p, CudaStream stream) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  if (p.rows * p.width == 0) return;
  if (are_whole_units((p.width | p.x_stride) * kBytes, p.x, p.y))
    launch<uint4>(p, stream);
  else
    launch<Native<T>>(p, stream);
}

template void copy_rows(const CopyRows<float>&, CudaStream);
template void copy_rows(const CopyRows<BFloat16>&, CudaStream);
template void copy_rows(const CopyRows<std::int64_t>&, CudaStream);

}  // namespace hstu::kernels
