#include "hstu/loss/cross_entropy.h"

#include "hstu/kernels/cross_entropy.h"
#include "hstu/ops/op.h"

namespace hstu::loss {
namespace {

using ops::Operation;

const float* weights_of(const RowLabels& rows) {
  return rows.weights.defined() ? rows.weights.data<float>() : nullptr;
}

// `forward` and `backward` call a pair of kernels with their arguments and the stream.
template <Operation operation, typename Forward, typename Backward>
Variable cross_entropy(Tape& tape, const Variable& logits, const RowLabels& given, double factor,
                       const Forward& forward, const Backward& backward) {
  const auto& [labels, weights] = given;
  const std::int64_t rows = logits.rows(), outputs = logits.cols();
  require(labels.size() == rows && (!weights.defined() || weights.size() == rows),
          "{}: expected {} labels and weights, found {} labels", ops::name_of(operation), rows,
          labels.size());
  const Context& context = tape.context();
  ops::check_devices<operation>(context, logits, labels, weights);
  const DType type = logits.value().dtype();
  Tensor loss = Tensor::empty({1}, accumulator_of(type), context);
  ops::dispatch<operation>(context, type, [&]<typename T>(auto stream) {
    forward(kernels::CrossEntropy<T>{.rows = rows,
                                     .outputs = outputs,
                                     .factor = factor,
                                     .logits = logits.value().data<T>(),
                                     .labels = given.labels.data<std::int64_t>(),
                                     .weights = weights_of(given),
                                     .loss = loss.mutable_data<Accumulator<T>>()},
            stream);
  });
  return tape.record(loss, {logits}, [=](const Tensor& dloss) {
    ops::dispatch<operation>(context, type, [&]<typename T>(auto stream) {
      backward(kernels::CrossEntropyBackward<T>{.rows = rows,
                                                .outputs = outputs,
                                                .factor = factor,
                                                .logits = logits.value().data<T>(),
                                                .labels = given.labels.data<std::int64_t>(),
                                                .weights = weights_of(given),
                                                .dloss = dloss.data<Accumulator<T>>(),
                                                .dlogits = ops::gradient_of<T>(logits, context)},
               stream);
    });
  });
}

}  // namespace

Variable multi_class_cross_entropy(Tape& tape, const Variable& logits, const RowLabels& rows, double factor) {
  return cross_entropy<Operation::multi_class_cross_entropy>(
      tape, logits, rows, factor,
      [](const auto& p, auto stream) { kernels::multi_class_cross_entropy(p, stream); },
      [](const auto& p, auto stream) { kernels::multi_class_cross_entropy_backward(p, stream); });
}

Variable multi_task_cross_entropy(Tape& tape, const Variable& logits, const RowLabels& rows, double factor) {
  return cross_entropy<Operation::multi_task_cross_entropy>(
      tape, logits, rows, factor,
      [](const auto& p, auto stream) { kernels::multi_task_cross_entropy(p, stream); },
      [](const auto& p, auto stream) { kernels::multi_task_cross_entropy_backward(p, stream); });
}

}  // namespace hstu::loss
