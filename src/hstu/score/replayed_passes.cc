#include "hstu/score/replayed_passes.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/device/keeping_pool.h"
#include "hstu/score/history_cache.h"
#include "hstu/step/launches.h"
#include "hstu/tensor/profiler_trace.h"
#include "hstu/tensor/tape.h"

namespace hstu {

Tensor ReplayedPasses::outputs(Learner& learner, const Batch& batch) {
  const Context& compute = learner.compute;
  const ops::KeptWeights::Use use(weights_);
  const bool on_one_gpu = !compute.device().is_host() && learner.gpus == nullptr;
  const bool is_measured = compute.trace != nullptr && compute.trace != profiler_trace();
  Pass* pass = nullptr;
  if (on_one_gpu && has_weights_ && !is_measured && has_few_tokens(batch)) {
    pass = &pass_of(key_of(batch));
    if (!pass->rows.empty() && !pass->recording && !pass->is_refused) record(learner, batch, *pass);
    if (pass->recording) {
      compute.stream.wait(look_up(learner, batch, RowAccess::read, pass->rows).ready);
      pass->recording->replay();
      ++replays_;
      return pass->outputs;
    }
  }
  const BatchRows rows = look_up(learner, batch, RowAccess::read);
  compute.stream.wait(rows.ready);
  if (pass != nullptr && pass->rows.empty())
    for (const Variable& leaf : rows.leaves)
      pass->rows.push_back(Tensor::empty(leaf.value().shape(), leaf.value().dtype(), compute));
  Tape tape(compute, false);
  Variable outputs;
  with_launches_of(learner, &batch,
                   [&] { outputs = learner.model->forward(tape, batch, rows.leaves, Draws()); });
  if (on_one_gpu && !has_weights_) {  // copies of all weights were made
    compute.stream.synchronize();
    weights_.set_ready();
    has_weights_ = true;
  }
  return outputs.value();
}

// Equal keys are of passes with the same launches, which read the same addresses.
ReplayedPasses::Key ReplayedPasses::key_of(const Batch& batch) {
  Key key{batch.samples, batch.tokens, batch.longest};
  for (const Batch::Column& column : batch.columns()) {
    key.push_back(column.offset);
    key.push_back(column.name == kPastPagesColumn ? 0 : static_cast<std::int64_t>(column.elements()));
    // A mask without targets or contexts is another one.
    if (column.type != DType::i32 || column.shape != Shape{batch.samples}) continue;
    const auto values = batch.values<std::int32_t>(column.name);
    key.push_back(std::ranges::any_of(values, [](std::int32_t value) { return value > 0; }) ? 1 : 0);
  }
  const Tensor any = batch.tensor(batch.columns().front().name);
  key.push_back(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(any.raw())));
  return key;
}

ReplayedPasses::Pass& ReplayedPasses::pass_of(Key key) {
  const auto known = std::ranges::find(passes_, key, &Pass::key);
  if (known != passes_.end()) {
    passes_.splice(passes_.begin(), passes_, known);
    return passes_.front();
  }
  if (passes_.size() == kMost) passes_.pop_back();
  passes_.push_front(
      {.key = std::move(key), .rows = {}, .outputs = {}, .recording = {}, .is_refused = false});
  return passes_.front();
}

void ReplayedPasses::record(Learner& learner, const Batch& batch, Pass& pass) {
  if (memory_ == nullptr) memory_ = std::make_shared<KeepingPool>(learner.compute.memory);
  Context context = learner.compute;
  context.memory = memory_;
  std::vector<Variable> leaves;
  for (const Tensor& values : pass.rows) leaves.emplace_back(values);
  try {
    pass.recording.emplace(context.stream, [&] {
      Tape tape(context, false);
      pass.outputs = learner.model->forward(tape, batch, leaves, Draws()).value();
    });
  } catch (const InternalError&) {  // a pass with copies of its own, which cannot be recorded
    pass.is_refused = true;
  }
}

}  // namespace hstu
