#include <cmath>

#include "hstu/base/threads.h"
#include "hstu/kernels/cross_entropy.h"
#include "hstu/kernels/reduce.h"
#include "hstu/kernels/row_weight.h"

namespace hstu::kernels {
namespace {

bool has_bit(std::int64_t label, std::int64_t task) {
  return ((label >> task) & 1) != 0;
}

}  // namespace

template <typename T>
void multi_task_cross_entropy(const CrossEntropy<T>& p, HostStream) {
  double total = 0;
  sum_over_rows(p.rows, 1, Gradient<double>{&total}, [&](std::int64_t begin, std::int64_t end, double* sum) {
    for (std::int64_t r = begin; r < end; ++r) {
      const double weight = weight_of(p.weights, r);
      for (std::int64_t k = 0; k < p.outputs; ++k) {
        const double z = p.logits[r * p.outputs + k];
        *sum += weight * ((z > 0 ? z : z * 0) - (has_bit(p.labels[r], k) ? z : 0) +
                          std::log1p(std::exp(-std::abs(z))));
      }
    }
  });
  *p.loss = static_cast<T>(p.factor * total);
}

template <typename T>
void multi_task_cross_entropy_backward(const CrossEntropyBackward<T>& p, HostStream) {
  if (p.dlogits.to == nullptr) return;
  const double seed = *p.dloss * p.factor;
  parallel_blocks(p.rows, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const double scale = seed * weight_of(p.weights, r);
      for (std::int64_t k = 0; k < p.outputs; ++k) {
        const std::int64_t i = r * p.outputs + k;
        const double probability = 1 / (1 + std::exp(-static_cast<double>(p.logits[i])));
        const T result = static_cast<T>(scale * (probability - (has_bit(p.labels[r], k) ? 1 : 0)));
        p.dlogits.to[i] = p.dlogits.accumulate ? p.dlogits.to[i] + result : result;
      }
    }
  });
}

template void multi_task_cross_entropy(const CrossEntropy<float>&, HostStream);
template void multi_task_cross_entropy(const CrossEntropy<double>&, HostStream);
template void multi_task_cross_entropy_backward(const CrossEntropyBackward<float>&, HostStream);
template void multi_task_cross_entropy_backward(const CrossEntropyBackward<double>&, HostStream);

}  // namespace hstu::kernels
