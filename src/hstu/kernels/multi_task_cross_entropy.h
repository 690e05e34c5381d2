// The cross entropies of several yes-or-no tasks, whose labels are the bits of one number per row: bit k,
// counted from the lowest, is the label of task k. Each is stable for logits of any size, as
// kernels/binary_cross_entropy.h states; a NaN logit gives NaN.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

template <typename T>
struct MultiTaskCrossEntropy {
  std::int64_t rows = 0, tasks = 0;      // at most 63 tasks
  double factor = 1;                     // of the sum
  const T* logits = nullptr;             // (rows, tasks)
  const std::int64_t* labels = nullptr;  // (rows) bits
  Accumulator<T>* loss = nullptr;        // (1)
};

template <typename T>
struct MultiTaskCrossEntropyBackward {
  std::int64_t rows = 0, tasks = 0;
  double factor = 1;
  const T* logits = nullptr;  // as in the forward pass, like labels
  const std::int64_t* labels = nullptr;
  const Accumulator<T>* dloss = nullptr;  // (1)
  Gradient<T> dlogits;                    // (rows, tasks)
};

// loss = factor * the sum over rows and tasks, in double and in an order that is the same every time.
template <typename T>
void multi_task_cross_entropy(const MultiTaskCrossEntropy<T>& p, HostStream);
template <typename T>
void multi_task_cross_entropy(const MultiTaskCrossEntropy<T>& p, CudaStream);
template <typename T>
void multi_task_cross_entropy_backward(const MultiTaskCrossEntropyBackward<T>& p, HostStream);
template <typename T>
void multi_task_cross_entropy_backward(const MultiTaskCrossEntropyBackward<T>& p, CudaStream);

}  // namespace hstu::kernels
