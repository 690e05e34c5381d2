#include "hstu/kernels/cross_entropy.h"
#include "hstu/kernels/cuda/loss_sum.cuh"
#include "hstu/kernels/cuda/numbers.cuh"
#include "hstu/kernels/row_weight.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

// log(sum of e^z) of a row.
template <typename N>
__device__ double log_sum(const N* logits, std::int64_t classes) {
  double largest = to_float(logits[0]);
  for (std::int64_t c = 1; c < classes; ++c) {
    const double z = to_float(logits[c]);
    largest = z > largest ? z : largest;
  }
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += exp(static_cast<double>(to_float(logits[c])) - largest);
  return largest + log(sum);
}

template <typename N>
struct ClassLoss {
  std::int64_t classes;
  const N* logits;
  const std::int64_t* labels;
  const float* weights;

  __device__ double operator()(std::int64_t r) const {
    const N* const z = logits + r * classes;
    return weight_of(weights, r) * (log_sum(z, classes) - static_cast<double>(to_float(z[labels[r]])));
  }
};

template <typename N>
__global__ void class_gradient(std::int64_t rows, std::int64_t classes, double factor, const N* logits,
                               const std::int64_t* labels, const float* weights, const float* dloss,
                               Target<N> dlogits) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (r >= rows) return;
  const double total = log_sum(logits + r * classes, classes), seed = *dloss * factor * weight_of(weights, r);
  for (std::int64_t c = 0; c < classes; ++c) {
    const std::int64_t i = r * classes + c;
    const double probability = exp(static_cast<double>(to_float(logits[i])) - total);
    dlogits.put(i, static_cast<float>(seed * (probability - (labels[r] == c ? 1 : 0))));
  }
}

}  // namespace

template <typename T>
void multi_class_cross_entropy(const CrossEntropy<T>& p, CudaStream stream) {
  sum_losses(p.rows, p.factor, ClassLoss<Native<T>>{p.outputs, native(p.logits), p.labels, p.weights}, p.loss,
             stream);
}

template <typename T>
void multi_class_cross_entropy_backward(const CrossEntropyBackward<T>& p, CudaStream stream) {
  if (p.dlogits.to == nullptr || p.rows == 0) return;
  hstu::cuda::launch("multi-class cross entropy, backward", class_gradient<Native<T>>,
                     blocks_for(p.rows, kThreads), kThreads, stream.handle, p.rows, p.outputs, p.factor,
                     native(p.logits), p.labels, p.weights, p.dloss, target(p.dlogits));
}

template void multi_class_cross_entropy(const CrossEntropy<float>&, CudaStream);
template void multi_class_cross_entropy(const CrossEntropy<BFloat16>&, CudaStream);
template void multi_class_cross_entropy_backward(const CrossEntropyBackward<float>&, CudaStream);
template void multi_class_cross_entropy_backward(const CrossEntropyBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
