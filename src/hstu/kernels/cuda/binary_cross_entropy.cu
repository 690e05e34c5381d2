#include "hstu/kernels/binary_cross_entropy.h"
#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels {
namespace {

using namespace cuda;

inline constexpr int kSumThreads = 1024;

// One block: each thread adds every 1,024th sample, then a tree in a fixed order.
template <typename N>
__global__ void sum_binary_losses(std::int64_t samples, double factor, const N* logits, const float* labels,
                                  const float* weights, float* loss) {
  hstu::cuda::wait_for_previous_launch();
  __shared__ double sums[kSumThreads];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < samples; i += kSumThreads) {
    if (weights[i] == 0) continue;
    const double z = to_float(logits[i]);
    sum += weights[i] * ((z > 0 ? z : z * 0) - z * labels[i] + log1p(exp(-fabs(z))));
  }
  sums[threadIdx.x] = sum;
  for (int half = kSumThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *loss = static_cast<float>(factor * sums[0]);
}

template <typename N>
__global__ void loss_gradient(std::int64_t samples, double factor, const N* logits, const float* labels,
                              const float* weights, const float* dloss, Target<N> dlogits) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= samples) return;
  const double probability = 1 / (1 + exp(-static_cast<double>(to_float(logits[i]))));
  const double seed = *dloss * factor;
  dlogits.put(i, weights[i] == 0 ? 0.0f : static_cast<float>(seed * weights[i] * (probability - labels[i])));
}

}  // namespace

template <typename T>
void binary_cross_entropy(const BinaryCrossEntropyForward<T>& p, CudaStream stream) {
  hstu::cuda::launch("binary cross entropy", sum_binary_losses<Native<T>>, 1, kSumThreads, stream.handle,
                     p.samples, p.factor, native(p.logits), p.labels, p.weights, p.loss);
}

template <typename T>
void binary_cross_entropy_backward(const BinaryCrossEntropyBackward<T>& p, CudaStream stream) {
  if (p.dlogits.to == nullptr || p.samples == 0) return;
  hstu::cuda::launch("binary cross entropy, backward", loss_gradient<Native<T>>,
                     blocks_for(p.samples, kThreads), kThreads, stream.handle, p.samples, p.factor,
                     native(p.logits), p.labels, p.weights, p.dloss, target(p.dlogits));
}

template void binary_cross_entropy(const BinaryCrossEntropyForward<float>&, CudaStream);
template void binary_cross_entropy(const BinaryCrossEntropyForward<BFloat16>&, CudaStream);
template void binary_cross_entropy_backward(const BinaryCrossEntropyBackward<float>&, CudaStream);
template void binary_cross_entropy_backward(const BinaryCrossEntropyBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
