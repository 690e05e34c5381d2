#include "hstu/loss/binary_cross_entropy.h"

#include "hstu/kernels/binary_cross_entropy.h"
#include "hstu/ops/op.h"

namespace hstu::loss {

using ops::Operation;

Variable binary_cross_entropy(Tape& tape, const Variable& logits, const Tensor& labels, const Tensor& weights,
                              double factor) {
  const std::int64_t n = logits.value().size();
  require(labels.size() == n && weights.size() == n, "expected {} labels and weights, found {} and {}", n,
          labels.size(), weights.size());
  const Context& context = tape.context();
  ops::check_devices<Operation::binary_cross_entropy>(context, logits, labels, weights);
  const DType type = logits.value().dtype();
  Tensor loss = Tensor::empty({1}, accumulator_of(type), context);
  ops::dispatch<Operation::binary_cross_entropy>(context, type, [&]<typename T>(auto stream) {
    kernels::binary_cross_entropy(
        kernels::BinaryCrossEntropyForward<T>{.samples = n,
                                              .factor = factor,
                                              .logits = logits.value().data<T>(),
                                              .labels = labels.data<float>(),
                                              .weights = weights.data<float>(),
                                              .loss = loss.mutable_data<Accumulator<T>>()},
        stream);
  });
  return tape.record(loss, {logits}, [=](const Tensor& dloss) {
    ops::dispatch<Operation::binary_cross_entropy>(context, type, [&]<typename T>(auto stream) {
      kernels::binary_cross_entropy_backward(
          kernels::BinaryCrossEntropyBackward<T>{.samples = n,
                                                 .factor = factor,
                                                 .logits = logits.value().data<T>(),
                                                 .labels = labels.data<float>(),
                                                 .weights = weights.data<float>(),
                                                 .dloss = dloss.data<Accumulator<T>>(),
                                                 .dlogits = ops::gradient_of<T>(logits, context)},
          stream);
    });
  });
}

}  // namespace hstu::loss
