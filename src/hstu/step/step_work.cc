#include "hstu/step/step_work.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/faults.h"
#include "hstu/experiment/over_ranks.h"
#include "hstu/step/dense_shards.h"
#include "hstu/step/launches.h"

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
    : PartPasses(*learner.model, *learner.objective, context.compute, context.draws, learner.gradient_of_loss,
                 parts, learner.catalogue_rows(true)),
      learner_(learner),
      context_(context),
      sections_(context.compute, is_timed(learner, context.step)),
      row_gradients_(learner.tables),
      visits_(learner.tables),
      predictions_(context.unshared ? context.unshared : learner.objective->step_tally()) {
  require(learner.tables.comm().size() == context.comm.size(), "a step of {} ranks with tables that {} share",
          context.comm.size(), learner.tables.comm().size());
  const RunOptions& options = learner.options;
  result_.lr_dense = learning_rate(options.schedule, options.dense.learning_rate).at(context.step);
  result_.lr_sparse = learning_rate(options.schedule, options.sparse.learning_rate).at(context.step);
  learner.model->parameters().clear_gradients(context.compute.stream);
  sums_.emplace(learner.model->parameters(), Group{context.comm, learner.gpus.get(), &learner.exchanges},
                context.compute, learner.exchange);
}

void StepWork::enter(std::string_view section) {
  sections_.enter(section);
  beat(section);
  if (const Groups* const groups = context_.compute.groups; groups != nullptr && groups->context.size() > 1)
    groups->context.host.enter(context_.step, section);
}

void StepWork::beat(std::string_view stage) const {
  if (context_.watch != nullptr) context_.watch->beat(context_.step, stage);
}

void StepWork::launch(const std::function<void()>& passes) {
  with_launches_of_part(learner_, part(), passes);
}

BatchRows StepWork::look_up(const Batch& batch) {
  enter(kLookupSection);
  context_.comm.enter(context_.step, kLookupSection);
  const TraceRange stage(context_.compute, kEmbeddingStage);
  BatchRows found = hstu::look_up(learner_, batch, RowAccess::train);
  touches_bytes(2 * bytes_of(found.leaves));
  return found;
}

// The lookup of the next step's rows begins beside the last part's passes.
void StepWork::forward() {
  bad_ids_.insert(bad_ids_.end(), part()->bad_ids.begin(), part()->bad_ids.end());
  if (!learner_.tables.device().is_host()) {
    const TraceRange stage(context_.compute, kEmbeddingStage);
    context_.compute.stream.wait(rows().ready);
  }
  enter(kForwardSection);
  ahead_.emplace(learner_, is_last() ? &parts() : nullptr);
  PartPasses::forward();
}

// The loss may exchange rows of all ranks, and the lookup ahead has their communicator.
void StepWork::loss() {
  if (!learner_.catalogues.empty()) ahead_->finish();
  PartPasses::loss();
  ahead_->finish();  // before the sums of gradients
  predictions_->add(*part(), outputs().back(), context_.compute.stream);
  if (learner_.gpus != nullptr) exchanges_ = learner_.gpus->begun();
}

void StepWork::backward() {
  enter(kBackwardSection);
  if (begins_sums()) tape().on_final([&](const Parameter& parameter) { sums_->begin(parameter); });
  PartPasses::backward();
  ahead_.reset();
  row_bytes_ += bytes_of(rows().leaves);
  result_.samples += part()->anchors;
  result_.tokens += part()->tokens;
  result_.flops += learner_.model->flops(*part());
}

void StepWork::take_row_gradients(std::vector<Tensor> gradients) {
  if (begins_sums()) sums_->begin_rest();  // before the gradients of rows, on all ranks
  {
    const TraceRange stage(context_.compute, kEmbeddingStage);
    // Before the tables' stream waits for the gradients.
    if (const Batch* const later = is_last() ? parts().later(Wait::no) : nullptr)
      prefetch_rows(learner_, *later);
    learner_.tables.stream().wait(context_.compute.stream);
    if (learner_.tables.any_limits()) note_visits(*part());
    if (learner_.gpus != nullptr) context_.comm.enter("row gradients");
    row_gradients_.add(std::move(rows().selection), std::move(gradients));
  }
  sections_.leave();
}

void StepWork::note_visits(const Batch& batch) {
  count_visits(learner_, batch, rows().selection, visits_);
  if (learner_.event_times == nullptr) return;
  for (const std::int64_t position : batch.values<std::int64_t>(kPositionColumn))
    time_ = std::max(time_, (*learner_.event_times)[position]);
}

void StepWork::sum_over_ranks() {
  enter(kUpdateSection);
  sums_->finish();
  context_.comm.enter("row gradients");
  add_catalogue_gradients();
  row_gradients_.merge(context_.comm);
  sums_->wait();
  sums_.reset();
}

void StepWork::add_catalogue_gradients() {
  const std::vector<CatalogueUse> uses = learner_.objective->catalogues();
  for (std::size_t c = 0; c < uses.size(); ++c)
    if (uses[c].has_gradient || learner_.updates_all(*learner_.catalogues[c]))
      row_gradients_.add(*learner_.catalogues[c]);
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
  if (result_.predictions) return;
  {
    const TraceRange stage(context_.compute, kPredictionsStage);
    if (learner_.gpus != nullptr) learner_.gpus->wait(exchanges_);
    context_.comm.enter(kPredictionsStage);
    // One that is not finite ends the step later: the loss and gradients may say why.
    bad_output_ = predictions_->collect(learner_.copies);
    if (!context_.unshared) predictions_->share(context_.comm);
  }
  if (context_.on_predictions && !context_.unshared) context_.on_predictions(*predictions_);
  result_.predictions = predictions_;
}

double StepWork::loss_of_rank() const {
  double loss = 0;
  for (const Tensor& of_part : losses()) loss += of_part.to_host(context_.compute.stream).data<float>()[0];
  return loss;
}

void StepWork::settle_figures(double loss_of_rank, double gradient_norm) {
  result_.loss = loss_of_rank;
  result_.gradient_norm = gradient_norm;
  if (context_.unshared) return;
  context_.comm.enter("figures");
  hstu::sum_over_ranks(std::span(&result_, 1), context_.comm);
}

bool StepWork::any_rank_has(bool not_finite) {
  context_.comm.enter("check of the update");
  std::array<std::int64_t, 2> of_ranks{not_finite ? 1 : 0, std::ssize(bad_ids_)};
  context_.comm.all_reduce_sum<std::int64_t>(of_ranks);
  if (of_ranks[1] > 0) learner_.bad_ids.add(gather(bad_ids_, context_.comm));
  return of_ranks[0] > 0;
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
