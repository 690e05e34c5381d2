#include "hstu/kernels/cross_entropy.h"
#include "hstu/kernels/cuda/loss_sum.cuh"
#include "hstu/kernels/cuda/numbers.cuh"
#include "hstu/kernels/row_weight.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

template <typename N>
struct TaskLoss {
  std::int64_t tasks;
  const N* logits;
  const std::int64_t* labels;
  const float* weights;

  __device__ double operator()(std::int64_t r) const {
    double sum = 0;
    for (std::int64_t k = 0; k < tasks; ++k) {
      const double z = to_float(logits[r * tasks + k]);
      sum += (z > 0 ? z : z * 0) - (((labels[r] >> k) & 1) != 0 ? z : 0) + log1p(exp(-fabs(z)));
    }
    return weight_of(weights, r) * sum;
  }
};

template <typename N>
__global__ void task_gradient(std::int64_t size, std::int64_t tasks, double factor, const N* logits,
                              const std::int64_t* labels, const float* weights, const float* dloss,
                              Target<N> dlogits) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= size) return;
  const double probability = 1 / (1 + exp(-static_cast<double>(to_float(logits[i]))));
  const double label = static_cast<double>((labels[i / tasks] >> (i % tasks)) & 1);
  const double seed = *dloss * factor * weight_of(weights, i / tasks);
  dlogits.put(i, static_cast<float>(seed * (probability - label)));
}

}  // namespace

template <typename T>
void multi_task_cross_entropy(const CrossEntropy<T>& p, CudaStream stream) {
  sum_losses(p.rows, p.factor, TaskLoss<Native<T>>{p.outputs, native(p.logits), p.labels, p.weights}, p.loss,
             stream);
}

template <typename T>
void multi_task_cross_entropy_backward(const CrossEntropyBackward<T>& p, CudaStream stream) {
  const std::int64_t size = p.rows * p.outputs;
  if (p.dlogits.to == nullptr || size == 0) return;
  hstu::cuda::launch("multi-task cross entropy, backward", task_gradient<Native<T>>,
                     blocks_for(size, kThreads), kThreads, stream.handle, size, p.outputs, p.factor,
                     native(p.logits), p.labels, p.weights, p.dloss, target(p.dlogits));
}

template void multi_task_cross_entropy(const CrossEntropy<float>&, CudaStream);
template void multi_task_cross_entropy(const CrossEntropy<BFloat16>&, CudaStream);
template void multi_task_cross_entropy_backward(const CrossEntropyBackward<float>&, CudaStream);
template void multi_task_cross_entropy_backward(const CrossEntropyBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
