#include "hstu/kernels/convert.h"
#include "hstu/kernels/cuda/rows.cuh"

namespace hstu::kernels {
namespace {

using namespace cuda;

// 16 bytes at a time: the weights of a model are converted in every step.
template <typename From, typename To>
__global__ void convert_elements(std::int64_t size, const From* x, Target<To> y) {
  const std::int64_t c = first_of_thread();
  hstu::cuda::wait_for_previous_launch();
  if (c >= size) return;
  float v[kGroup];
  load_group(x, c, size, v);
  put_group(y, 0, c, size, v);
}

}  // namespace

template <typename From, typename To>
void convert(const Convert<From, To>& p, CudaStream stream) {
  if (p.size == 0 || p.y.to == nullptr) return;
  hstu::cuda::launch("convert", convert_elements<Native<From>, Native<To>>,
                     blocks_for(p.size, kGroup * kThreads), kThreads, stream.handle, p.size, native(p.x),
                     target(p.y));
}

template void convert(const Convert<float, BFloat16>&, CudaStream);
template void convert(const Convert<BFloat16, float>&, CudaStream);

}  // namespace hstu::kernels
