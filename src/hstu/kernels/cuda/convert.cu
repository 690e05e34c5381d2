#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/ptx.cuh"
#include "hstu/kernels/convert.h"
#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels {
namespace {

using namespace cuda;

template <typename From, typename To>
__global__ void convert_elements(std::int64_t size, const From* x, Target<To> y) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  hstu::cuda::wait_for_previous_launch();
  if (i < size) y.put(i, to_float(x[i]));
}

}  // namespace

template <typename From, typename To>
void convert(const Convert<From, To>& p, CudaStream stream) {
  if (p.size == 0 || p.y.to == nullptr) return;
  hstu::cuda::launch("convert", convert_elements<Native<From>, Native<To>>, blocks_for(p.size, kThreads),
                     kThreads, stream.handle, p.size, native(p.x), target(p.y));
}

template void convert(const Convert<float, BFloat16>&, CudaStream);
template void convert(const Convert<BFloat16, float>&, CudaStream);

}  // namespace hstu::kernels
