// Cross entropies of rows of logits with one integer label each. They are stable for logits of any size; a
// NaN logit gives NaN.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

template <typename T>
struct CrossEntropy {
  std::int64_t rows = 0, outputs = 0;    // classes, or tasks (at most 63)
  double factor = 1;                     // of the sum
  const T* logits = nullptr;             // (rows, outputs)
  const std::int64_t* labels = nullptr;  // (rows)
  const float* weights = nullptr;        // (rows) factors of the rows' losses; null: 1
  Accumulator<T>* loss = nullptr;        // (1)
};

template <typename T>
struct CrossEntropyBackward {
  std::int64_t rows = 0, outputs = 0;
  double factor = 1;
  const T* logits = nullptr;  // as in the forward pass, like labels and weights
  const std::int64_t* labels = nullptr;
  const float* weights = nullptr;
  const Accumulator<T>* dloss = nullptr;  // (1)
  Gradient<T> dlogits;                    // (rows, outputs)
};

// One class out of several: loss = factor * the sum over rows of log(sum over c of e^z_c) - z_label, computed
// relative to the row's largest logit. Sums are in double and in an order that is the same every time.
template <typename T>
void multi_class_cross_entropy(const CrossEntropy<T>& p, HostStream);
template <typename T>
void multi_class_cross_entropy(const CrossEntropy<T>& p, CudaStream);
template <typename T>
void multi_class_cross_entropy_backward(const CrossEntropyBackward<T>& p, HostStream);
template <typename T>
void multi_class_cross_entropy_backward(const CrossEntropyBackward<T>& p, CudaStream);

// Several yes-or-no tasks: bit k of a label, counted from the lowest, is the label of task k. loss = factor *
// the sum over rows and tasks of the binary cross entropy (binary_cross_entropy.h), likewise.
template <typename T>
void multi_task_cross_entropy(const CrossEntropy<T>& p, HostStream);
template <typename T>
void multi_task_cross_entropy(const CrossEntropy<T>& p, CudaStream);
template <typename T>
void multi_task_cross_entropy_backward(const CrossEntropyBackward<T>& p, HostStream);
template <typename T>
void multi_task_cross_entropy_backward(const CrossEntropyBackward<T>& p, CudaStream);

}  // namespace hstu::kernels
