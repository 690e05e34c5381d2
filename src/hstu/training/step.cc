#include "hstu/training/step.h"

#include <cmath>
#include <string>
#include <utility>

#include "hstu/base/clock.h"
#include "hstu/base/faults.h"
#include "hstu/base/random.h"
#include "hstu/loss/binary_cross_entropy.h"
#include "hstu/optimizer/clipping.h"

namespace hstu {
namespace {

bool all_finite(const Tensor& tensor) {
  const float* const values = tensor.data<float>();
  bool finite = true;
  for (std::int64_t i = 0; i < tensor.size(); ++i) finite &= std::isfinite(values[i]);
  return finite;
}

// What a user looks at first when numbers run away.
[[noreturn]] void fail_not_finite(const Learner& learner, const Embeddings::Lookup& lookup, std::int64_t step,
                                  const std::string& what) {
  std::string first = "the activations";
  for (const Parameter* parameter : learner.model.parameters().all()) {
    if (!all_finite(parameter->value)) {
      first = "parameter " + parameter->name;
      break;
    }
  }
  for (const auto& touched : lookup.touched) {
    if (!all_finite(touched.rows.value())) {
      first = "embedding table " + learner.embeddings.tables()[touched.table].config().name;
      break;
    }
  }
  fail(
      "step {}: {}; the first bad tensor is {}. Lower the learning rates, lengthen schedule.warmup_steps or "
      "look at "
      "the data; the last checkpoint is good",
      step + 1, what, first);
}

// Milliseconds since the last call.
class Stopwatch {
 public:
  double lap() {
    const Clock::time_point before = std::exchange(last_, Clock::now());
    return 1000 * seconds_between(before, last_);
  }

 private:
  Clock::time_point last_ = Clock::now();
};

}  // namespace

StepResult train_step(Learner& learner, const Batch& batch, std::int64_t step) {
  const RunOptions& options = learner.options;
  StepResult result;
  result.samples = batch.samples;
  result.tokens = batch.history_offsets.back() + batch.samples * (learner.model.config().context + 1);
  result.lr_dense = learning_rate(options.schedule, options.dense.learning_rate).at(step);
  result.lr_sparse = learning_rate(options.schedule, options.sparse.learning_rate).at(step);

  Stopwatch watch;
  const Embeddings::Lookup lookup = learner.embeddings.lookup_for_training(batch);
  result.stages.lookup_ms = watch.lap();
  learner.model.parameters().clear_gradients();
  Tape tape;
  const std::uint64_t dropout_key =
      mix64(derive_key(options.seed, "dropout") + static_cast<std::uint64_t>(step)) | 1;
  const Variable logits = learner.model(tape, batch, lookup.rows, dropout_key);
  // The gradient is a sum over samples, divided once by their number over all ranks (here: one).
  const double factor = options.model.loss_weight / static_cast<double>(batch.samples);
  const Tensor labels = Tensor::from<float>({batch.samples}, {batch.label.begin(), batch.label.end()});
  const Variable loss = loss::binary_cross_entropy(tape, logits, labels, factor);
  result.loss = loss.value().data<float>()[0];
  if (!std::isfinite(result.loss)) {
    fail_not_finite(learner, lookup, step, fmt::format("the loss is {}", result.loss));
  }
  result.stages.forward_ms = watch.lap();
  tape.backward(loss);
  result.stages.backward_ms = watch.lap();

  const NamedTensors parameters = learner.model.parameters().all();
  result.gradient_norm = gradient_norm(parameters);
  if (!std::isfinite(result.gradient_norm)) {
    fail_not_finite(learner, lookup, step,
                    fmt::format("the gradient of {} is not finite", first_bad_gradient(parameters)));
  }
  learner.dense_optimizer.step(result.lr_dense,
                               clip_scale(result.gradient_norm, options.dense.max_gradient_norm));
  fault_point("step.middle");
  learner.embeddings.apply_gradients(lookup, result.lr_sparse);
  result.stages.update_ms = watch.lap();
  return result;
}

}  // namespace hstu
