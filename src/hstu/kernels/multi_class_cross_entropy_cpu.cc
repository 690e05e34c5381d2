#include <algorithm>
#include <cmath>

#include "hstu/base/threads.h"
#include "hstu/kernels/cross_entropy.h"
#include "hstu/kernels/reduce.h"
#include "hstu/kernels/row_weight.h"

namespace hstu::kernels {
namespace {

// log(sum of e^z) of a row.
template <typename T>
double log_sum(const T* logits, std::int64_t classes) {
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logits[c]) - largest);
  return largest + std::log(sum);
}

}  // namespace

template <typename T>
void multi_class_cross_entropy(const CrossEntropy<T>& p, HostStream) {
  double total = 0;
  sum_over_rows(p.rows, 1, Gradient<double>{&total}, [&](std::int64_t begin, std::int64_t end, double* sum) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* const z = p.logits + r * p.outputs;
      *sum += weight_of(p.weights, r) * (log_sum(z, p.outputs) - static_cast<double>(z[p.labels[r]]));
    }
  });
  *p.loss = static_cast<T>(p.factor * total);
}

template <typename T>
void multi_class_cross_entropy_backward(const CrossEntropyBackward<T>& p, HostStream) {
  if (p.dlogits.to == nullptr) return;
  const double seed = *p.dloss * p.factor;
  parallel_blocks(p.rows, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const double total = log_sum(p.logits + r * p.outputs, p.outputs),
                   scale = seed * weight_of(p.weights, r);
      for (std::int64_t c = 0; c < p.outputs; ++c) {
        const std::int64_t i = r * p.outputs + c;
        const double probability = std::exp(static_cast<double>(p.logits[i]) - total);
        const T result = static_cast<T>(scale * (probability - (p.labels[r] == c ? 1 : 0)));
        p.dlogits.to[i] = p.dlogits.accumulate ? p.dlogits.to[i] + result : result;
      }
    }
  });
}

template void multi_class_cross_entropy(const CrossEntropy<float>&, HostStream);
template void multi_class_cross_entropy(const CrossEntropy<double>&, HostStream);
template void multi_class_cross_entropy_backward(const CrossEntropyBackward<float>&, HostStream);
template void multi_class_cross_entropy_backward(const CrossEntropyBackward<double>&, HostStream);

}  // namespace hstu::kernels
