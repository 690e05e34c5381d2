#include "hstu/loss/sampled_softmax.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/kernels/sampled_loss.h"
#include "hstu/ops/norm.h"
#include "hstu/ops/op.h"

namespace hstu {

namespace loss {
namespace {

// (R, C)
Variable sampled_logits(Tape& tape, const Variable& vectors, const Variable& rows, const Tensor& index,
                        double scale) {
  constexpr auto kOperation = ops::Operation::sampled_logits;
  const Context& context = tape.context();
  ops::check_devices<kOperation>(context, vectors, rows, index);
  require(index.rows() == vectors.rows() && rows.cols() == vectors.cols(),
          "sampled_logits: vectors {}, rows {}, indices {}", ShapeText{vectors.value().shape()},
          ShapeText{rows.value().shape()}, ShapeText{index.shape()});
  const DType type = vectors.value().dtype();
  const auto arguments = [=]<typename T>(T* logits) {
    return kernels::SampledLogits<T>{.positions = vectors.rows(),
                                     .columns = index.cols(),
                                     .rows_count = rows.rows(),
                                     .width = rows.cols(),
                                     .scale = static_cast<Accumulator<T>>(scale),
                                     .vectors = vectors.value().data<T>(),
                                     .rows = rows.value().data<T>(),
                                     .index = index.data<std::int32_t>(),
                                     .logits = logits};
  };
  Tensor logits = Tensor::empty({index.rows(), index.cols()}, type, context);
  ops::dispatch<kOperation>(context, type, [&]<typename T>(auto stream) {
    kernels::sampled_logits(arguments(logits.mutable_data<T>()), stream);
  });
  return tape.record(logits, {vectors, rows}, [=](const Tensor& dlogits) {
    ops::dispatch<kOperation>(context, type, [&]<typename T>(auto stream) {
      kernels::sampled_logits_backward(
          kernels::SampledLogitsBackward<T>{.forward = arguments(static_cast<T*>(nullptr)),
                                            .dlogits = dlogits.data<T>(),
                                            .dvectors = ops::gradient_of<T>(vectors, context),
                                            .drows = ops::gradient_of<T>(rows, context)},
          stream);
    });
  });
}

struct LossForm {
  kernels::SampledLossForm form;
  double beta = 1;
  Tensor weights = {};  // as SoftmaxOptions has them
};

Variable sampled_loss(Tape& tape, const Variable& logits, const LossForm& form, double divisor) {
  constexpr auto kOperation = ops::Operation::sampled_loss;
  const Context& context = tape.context();
  require(!form.weights.defined() || form.weights.size() == logits.rows(),
          "sampled_loss: expected {} weights, found {}", logits.rows(), form.weights.size());
  ops::check_devices<kOperation>(context, logits, form.weights);
  const DType type = logits.value().dtype();
  const auto arguments = [=]<typename T>(const T* z, Accumulator<T>* loss) {
    return kernels::SampledLoss<T>{.form = form.form,
                                   .positions = logits.rows(),
                                   .columns = logits.cols(),
                                   .factor = 1 / divisor,
                                   .beta = form.beta,
                                   .logits = z,
                                   .weights = form.weights.defined() ? form.weights.data<float>() : nullptr,
                                   .loss = loss};
  };
  Tensor loss = Tensor::empty({1}, accumulator_of(type), context);
  ops::dispatch<kOperation>(context, type, [&]<typename T>(auto stream) {
    kernels::sampled_loss(arguments(logits.value().data<T>(), loss.mutable_data<Accumulator<T>>()), stream);
  });
  return tape.record(loss, {logits}, [=](const Tensor& dloss) {
    ops::dispatch<kOperation>(context, type, [&]<typename T>(auto stream) {
      kernels::sampled_loss_backward(
          kernels::SampledLossBackward<T>{
              .forward = arguments(logits.value().data<T>(), static_cast<Accumulator<T>*>(nullptr)),
              .dloss = dloss.data<Accumulator<T>>(),
              .dlogits = ops::gradient_of<T>(logits, context)},
          stream);
    });
  });
}

Variable loss_of(Tape& tape, const Variable& vectors, const SampledItems& items,
                 const SoftmaxOptions& options, const LossForm& form, double divisor) {
  const Variable rows = options.unit ? ops::l2_normalise(tape, items.rows, kUnitEpsilon) : items.rows;
  return sampled_loss(tape, sampled_logits(tape, vectors, rows, items.index, options.scale), form, divisor);
}

}  // namespace

Variable sampled_softmax(Tape& tape, const Variable& vectors, const SampledItems& items,
                         const SoftmaxOptions& options, double divisor) {
  return loss_of(tape, vectors, items, options, {kernels::SampledLossForm::softmax, 1, options.weights},
                 divisor);
}

Variable gbce(Tape& tape, const Variable& vectors, const SampledItems& items, const GbceOptions& options,
              double divisor) {
  const std::int64_t negatives = items.index.cols() - 1;
  require(options.catalogue >= 2 && negatives >= 1, "gbce: {} negatives of {} items", negatives,
          options.catalogue);
  const double a = std::min(1.0, static_cast<double>(negatives) / static_cast<double>(options.catalogue - 1)),
               beta = a * (options.calibration * (1 - 1 / a) + 1 / a);
  return loss_of(tape, vectors, items, options.logits,
                 {kernels::SampledLossForm::gbce, beta, options.logits.weights}, divisor);
}

}  // namespace loss
}  // namespace hstu
