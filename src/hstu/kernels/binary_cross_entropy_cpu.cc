#include <cmath>

#include "hstu/kernels/binary_cross_entropy.h"

namespace hstu::kernels {

template <typename T>
void binary_cross_entropy(const BinaryCrossEntropyForward<T>& p, HostStream) {
  double sum = 0;
  for (std::int64_t i = 0; i < p.samples; ++i) {
    if (p.weights[i] == 0) continue;
    const double z = p.logits[i];
    sum += p.weights[i] * ((z > 0 ? z : z * 0) - z * p.labels[i] + std::log1p(std::exp(-std::abs(z))));
  }
  *p.loss = static_cast<T>(p.factor * sum);
}

template <typename T>
void binary_cross_entropy_backward(const BinaryCrossEntropyBackward<T>& p, HostStream) {
  if (p.dlogits.to == nullptr) return;
  const double seed = *p.dloss * p.factor;
  for (std::int64_t i = 0; i < p.samples; ++i) {
    const double probability = 1 / (1 + std::exp(-static_cast<double>(p.logits[i])));
    const T result =
        p.weights[i] == 0 ? T(0) : static_cast<T>(seed * p.weights[i] * (probability - p.labels[i]));
    p.dlogits.to[i] = p.dlogits.accumulate ? p.dlogits.to[i] + result : result;
  }
}

template void binary_cross_entropy(const BinaryCrossEntropyForward<float>&, HostStream);
template void binary_cross_entropy(const BinaryCrossEntropyForward<double>&, HostStream);
template void binary_cross_entropy_backward(const BinaryCrossEntropyBackward<float>&, HostStream);
template void binary_cross_entropy_backward(const BinaryCrossEntropyBackward<double>&, HostStream);

}  // namespace hstu::kernels
