#include "hstu/step/step_work.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/faults.h"
#include "hstu/experiment/over_ranks.h"
#include "hstu/step/dense_shards.h"

namespace hstu {
namespace {

// About eight steps of each line of the log.
bool is_timed(const Learner& learner, std::int64_t step) {
  return (step + 1) % std::max<std::int64_t>(1, learner.options.metrics.every_steps / 8) == 0;
}

std::int64_t bytes_of(const std::vector<Variable>& rows) {
  std::size_t bytes = 0;
  for (const Variable& leaf : rows) bytes += leaf.value().bytes();
  return static_cast<std::int64_t>(bytes);
}

}  // namespace

StepWork::StepWork(Learner& learner, PartSource& parts, const StepContext& context)
    : learner_(learner),
      parts_(parts),
      context_(context),
      sections_(context.compute, is_timed(learner, context.step)),
      row_gradients_(learner.tables),
      visits_(learner.tables),
      predictions_(learner.objective->step_tally()) {
  require(learner.tables.comm().size() == context.comm.size(), "a step of {} ranks with tables that {} share",
          context.comm.size(), learner.tables.comm().size());
  const RunOptions& options = learner.options;
  result_.lr_dense = learning_rate(options.schedule, options.dense.learning_rate).at(context.step);
  result_.lr_sparse = learning_rate(options.schedule, options.sparse.learning_rate).at(context.step);
  part_.batch = parts.next();
  learner.model->parameters().clear_gradients(context.compute.stream);
  sums_.emplace(learner.model->parameters(), Group{context.comm, learner.gpus.get(), &learner.exchanges},
                context.compute, learner.exchange);
}

void StepWork::advance() {
  part_ = std::exchange(following_, {});
}

void StepWork::enter(std::string_view section) {
  sections_.enter(section);
  beat(section);
}

void StepWork::beat(std::string_view stage) const {
  if (context_.watch != nullptr) context_.watch->beat(context_.step, stage);
}

StepWork::Part StepWork::looked_up(const Batch* batch) {
  if (batch == nullptr) return {};
  enter(kLookupSection);
  context_.comm.enter(context_.step, kLookupSection);
  const TraceRange stage(context_.compute, kEmbeddingStage);
  Part part{batch, look_up(learner_, *batch, RowAccess::train)};
  touches_bytes(2 * bytes_of(part.rows->leaves));
  return part;
}

void StepWork::look_up_rows() {
  if (!part_.rows) part_ = looked_up(part_.batch);
  following_ = looked_up(parts_.next());
}

// The lookup of the next step's rows begins beside the last part's passes.
void StepWork::forward() {
  const Batch& batch = *part_.batch;
  bad_ids_.insert(bad_ids_.end(), batch.bad_ids.begin(), batch.bad_ids.end());
  if (!learner_.tables.device().is_host()) {
    const TraceRange stage(context_.compute, kEmbeddingStage);
    context_.compute.stream.wait(part_.rows->ready);
  }
  enter(kForwardSection);
  const bool is_last = following_.batch == nullptr;
  pass_.emplace(learner_, context_, is_last ? &parts_ : nullptr);
  pass_->outputs = learner_.model->forward(pass_->tape, batch, part_.rows->leaves, context_.draws);
}

void StepWork::loss() {
  pass_->loss = learner_.objective->loss(pass_->tape, pass_->outputs, *part_.batch);
  pass_->ahead.finish();  // before the sums of gradients
  outputs_.push_back(pass_->outputs.value());
  predictions_->add(*part_.batch, outputs_.back(), context_.compute.stream);
  if (learner_.gpus != nullptr) exchanges_ = learner_.gpus->begun();
}

void StepWork::backward() {
  const Batch& batch = *part_.batch;
  const bool is_last = following_.batch == nullptr;
  const bool begins_sums = is_last && context_.comm.size() > 1;
  enter(kBackwardSection);
  if (begins_sums) pass_->tape.on_final([&](const Parameter& parameter) { sums_->begin(parameter); });
  pass_->tape.backward(pass_->loss, Tensor(learner_.gradient_of_loss));
  if (begins_sums) sums_->begin_rest();  // before the gradients of rows, on all ranks
  {
    const TraceRange stage(context_.compute, kEmbeddingStage);
    // Before the tables' stream waits for the gradients.
    if (const Batch* const later = is_last ? parts_.later(Wait::no) : nullptr)
      prefetch_rows(learner_, *later);
    take_row_gradients(batch, *part_.rows);
  }
  sections_.leave();
  row_bytes_ += bytes_of(part_.rows->leaves);
  losses_.push_back(pass_->loss.value());
  result_.samples += batch.samples;
  result_.tokens += batch.tokens;
  result_.flops += learner_.model->flops(batch);
  pass_.reset();
}

void StepWork::take_row_gradients(const Batch& batch, BatchRows& rows) {
  std::vector<Tensor> gradients;
  gradients.reserve(rows.leaves.size());
  for (const Variable& leaf : rows.leaves) gradients.push_back(leaf.gradient());
  learner_.tables.stream().wait(context_.compute.stream);
  if (learner_.tables.any_limits()) {
    count_visits(learner_, batch, rows.selection, visits_);
    if (learner_.event_times != nullptr)
      for (const std::int64_t position : batch.values<std::int64_t>(kPositionColumn))
        time_ = std::max(time_, (*learner_.event_times)[position]);
  }
  if (learner_.gpus != nullptr) context_.comm.enter("row gradients");
  row_gradients_.add(std::move(rows.selection), std::move(gradients));
}

void StepWork::sum_over_ranks() {
  enter(kUpdateSection);
  sums_->finish();
  context_.comm.enter("row gradients");
  row_gradients_.merge(context_.comm);
  sums_->wait();
  sums_.reset();
}

void StepWork::update(double clip, const float* factor) {
  beat(kUpdateSection);  // its section may have ended: where the host decides
  {
    const TraceRange stage(context_.compute, kOptimizerStage);
    if (factor != nullptr)
      learner_.dense_optimizer.step(result_.lr_dense, factor);
    else
      learner_.dense_optimizer.step(result_.lr_dense, clip);
    touches_bytes(learner_.dense_optimizer.step_bytes());
    gather_values(learner_.dense_optimizer, context_.comm, learner_.gpus.get());
  }
  fault_point("step.middle");
  TableSet& tables = learner_.tables;
  const TraceRange stage(context_.compute, kEmbeddingStage);
  if (factor != nullptr) tables.stream().wait(context_.compute.stream);
  row_gradients_.apply({.learning_rate = result_.lr_sparse, .factor = factor, .step = context_.step});
  visits_.end_step(context_.comm, time_);
  tables.end_step();
  if (learner_.ahead.lookup != nullptr) learner_.ahead.lookup->find_changed();
  touches_bytes(3 * row_bytes_);  // gradients and rows read, rows written
  // The memory of gradients may be used again.
  if (!tables.device().is_host()) context_.compute.stream.wait(tables.stream());
}

void StepWork::settle_predictions() {
  {
    const TraceRange stage(context_.compute, kPredictionsStage);
    if (learner_.gpus != nullptr) learner_.gpus->wait(exchanges_);
    context_.comm.enter(kPredictionsStage);
    // One that is not finite ends the step later: the loss and gradients may say why.
    bad_output_ = predictions_->settle(learner_.copies, context_.comm);
  }
  if (context_.on_predictions) context_.on_predictions(*predictions_);
  result_.predictions = predictions_;
}

double StepWork::loss_of_rank() const {
  double loss = 0;
  for (const Tensor& part : losses_) loss += part.to_host(context_.compute.stream).data<float>()[0];
  return loss;
}

void StepWork::settle_figures(double loss_of_rank, double gradient_norm) {
  result_.loss = loss_of_rank;
  result_.gradient_norm = gradient_norm;
  context_.comm.enter("counts");
  hstu::sum_over_ranks(result_, context_.comm);
  learner_.bad_ids.add(gather(bad_ids_, context_.comm));
}

StepResult StepWork::figures() {
  result_.stages = sections_.times();
  result_.memory_peak = learner_.compute.memory->figures().peak;
  if (learner_.tables.context().memory != learner_.compute.memory)
    result_.memory_peak += learner_.tables.context().memory->figures().peak;
  if (learner_.gpus != nullptr) result_.memory_peak += learner_.exchange.memory->figures().peak;
  return std::move(result_);
}

void StepWork::touches_bytes(std::int64_t bytes) const {
  if (context_.compute.trace != nullptr) context_.compute.trace->touches_bytes(bytes);
}

}  // namespace hstu
