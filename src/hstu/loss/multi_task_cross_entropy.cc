#include "hstu/loss/multi_task_cross_entropy.h"

#include "hstu/kernels/multi_task_cross_entropy.h"
#include "hstu/ops/op.h"

namespace hstu::loss {

using ops::Operation;

Variable multi_task_cross_entropy(Tape& tape, const Variable& logits, const Tensor& labels, double factor) {
  const std::int64_t rows = logits.rows(), tasks = logits.cols();
  require(labels.size() == rows, "multi_task_cross_entropy: expected {} labels, found {}", rows,
          labels.size());
  const Context& context = tape.context();
  ops::check_devices<Operation::multi_task_cross_entropy>(context, logits, labels);
  const DType type = logits.value().dtype();
  Tensor loss = Tensor::empty({1}, accumulator_of(type), context);
  ops::dispatch<Operation::multi_task_cross_entropy>(context, type, [&]<typename T>(auto stream) {
    kernels::multi_task_cross_entropy(
        kernels::MultiTaskCrossEntropy<T>{.rows = rows,
                                          .tasks = tasks,
                                          .factor = factor,
                                          .logits = logits.value().data<T>(),
                                          .labels = labels.data<std::int64_t>(),
                                          .loss = loss.mutable_data<Accumulator<T>>()},
        stream);
  });
  return tape.record(loss, {logits}, [=](const Tensor& dloss) {
    ops::dispatch<Operation::multi_task_cross_entropy>(context, type, [&]<typename T>(auto stream) {
      kernels::multi_task_cross_entropy_backward(
          kernels::MultiTaskCrossEntropyBackward<T>{.rows = rows,
                                                    .tasks = tasks,
                                                    .factor = factor,
                                                    .logits = logits.value().data<T>(),
                                                    .labels = labels.data<std::int64_t>(),
                                                    .dloss = dloss.data<Accumulator<T>>(),
                                                    .dlogits = ops::gradient_of<T>(logits, context)},
          stream);
    });
  });
}

}  // namespace hstu::loss
