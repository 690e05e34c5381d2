// The cross entropy of labels under the probabilities sigmoid(logits), stable for logits of any size:
// max(z, 0) - z y + log(1 + e^-|z|). A NaN logit gives NaN.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

template <typename T>
struct BinaryCrossEntropyForward {
  std::int64_t samples = 0;        // B
  double factor = 1;               // of the sum
  const T* logits = nullptr;       // (B)
  const float* labels = nullptr;   // (B) 0 or 1
  const float* weights = nullptr;  // (B) factor of each sample; 0: not counted, its logit is not read
  Accumulator<T>* loss = nullptr;  // (1)
};

template <typename T>
struct BinaryCrossEntropyBackward {
  std::int64_t samples = 0;
  double factor = 1;
  const T* logits = nullptr;
  const float* labels = nullptr;
  const float* weights = nullptr;
  const Accumulator<T>* dloss = nullptr;  // (1)
  Gradient<T> dlogits;                    // (B)
};

// loss = factor * the sum over samples of weight times cross entropy, in double and in order.
template <typename T>
void binary_cross_entropy(const BinaryCrossEntropyForward<T>& p, HostStream);
template <typename T>
void binary_cross_entropy(const BinaryCrossEntropyForward<T>& p, CudaStream);
template <typename T>
void binary_cross_entropy_backward(const BinaryCrossEntropyBackward<T>& p, HostStream);
template <typename T>
void binary_cross_entropy_backward(const BinaryCrossEntropyBackward<T>& p, CudaStream);

}  // namespace hstu::kernels
