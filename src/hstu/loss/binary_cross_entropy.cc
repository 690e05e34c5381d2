#include "hstu/loss/binary_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hstu/ops/op.h"

namespace hstu::loss {

Variable binary_cross_entropy(Tape& tape, const Variable& logits, std::vector<float> labels, double factor) {
  const std::int64_t n = logits.value().size();
  require(static_cast<std::int64_t>(labels.size()) == n, "expected {} labels, found {}", n, labels.size());
  Tensor loss = Tensor::empty({1}, logits.value().dtype());
  ops::dispatch(loss.dtype(), [&]<typename T>() {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double z = logits.value().data<T>()[i];
      // max(z, 0) - z y + log(1 + e^-|z|); a NaN logit stays NaN.
      sum +=
          (z > 0 ? z : z * 0) - z * labels[static_cast<std::size_t>(i)] + std::log1p(std::exp(-std::abs(z)));
    }
    loss.mutable_data<T>()[0] = static_cast<T>(factor * sum);
  });
  return tape.record(loss, {logits}, [=, labels = std::move(labels)](Tensor& dy) {
    ops::dispatch(dy.dtype(), [&]<typename T>() {
      GradientSlot d = logits.gradient_slot();
      const double seed = dy.data<T>()[0] * factor;
      for (std::int64_t i = 0; i < n; ++i) {
        const double p = 1 / (1 + std::exp(-static_cast<double>(logits.value().data<T>()[i])));
        const T result_i = static_cast<T>(seed * (p - labels[static_cast<std::size_t>(i)]));
        d.data<T>()[i] = d.accumulate ? d.data<T>()[i] + result_i : result_i;
      }
    });
  });
}

}  // namespace hstu::loss
