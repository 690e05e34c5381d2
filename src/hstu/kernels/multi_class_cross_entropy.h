// The cross entropy of one class out of C under softmax(logits): log(sum over c of e^z_c) - z_label, computed
// relative to the largest logit, so that it is stable for logits of any size. A NaN logit gives NaN.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

template <typename T>
struct MultiClassCrossEntropy {
  std::int64_t rows = 0, classes = 0;    // C
  double factor = 1;                     // of the sum
  const T* logits = nullptr;             // (rows, C)
  const std::int64_t* labels = nullptr;  // (rows) in [0, C)
  Accumulator<T>* loss = nullptr;        // (1)
};

template <typename T>
struct MultiClassCrossEntropyBackward {
  std::int64_t rows = 0, classes = 0;
  double factor = 1;
  const T* logits = nullptr;  // as in the forward pass, like labels
  const std::int64_t* labels = nullptr;
  const Accumulator<T>* dloss = nullptr;  // (1)
  Gradient<T> dlogits;                    // (rows, C)
};

// loss = factor * the sum over rows, in double and in an order that is the same every time.
template <typename T>
void multi_class_cross_entropy(const MultiClassCrossEntropy<T>& p, HostStream);
template <typename T>
void multi_class_cross_entropy(const MultiClassCrossEntropy<T>& p, CudaStream);
template <typename T>
void multi_class_cross_entropy_backward(const MultiClassCrossEntropyBackward<T>& p, HostStream);
template <typename T>
void multi_class_cross_entropy_backward(const MultiClassCrossEntropyBackward<T>& p, CudaStream);

}  // namespace hstu::kernels
