#include "hstu/step/step_parts.h"

#include <algorithm>
#include <utility>

#include "hstu/step/dense_sums.h"
#include "hstu/step/launches.h"
#include "hstu/step/lookup_ahead.h"
#include "hstu/tensor/tape.h"

namespace hstu {
namespace {

std::int64_t latest_time(const Learner& learner, const Batch& batch) {
  std::int64_t time = kNoTime;
  if (learner.event_times == nullptr) return time;
  for (const std::int64_t position : batch.values<std::int64_t>(kPositionColumn))
    time = std::max(time, (*learner.event_times)[position]);
  return time;
}

std::int64_t bytes_of(const std::vector<Variable>& rows) {
  std::size_t bytes = 0;
  for (const Variable& leaf : rows) bytes += leaf.value().bytes();
  return static_cast<std::int64_t>(bytes);
}

// A batch (null: there is none) and its rows, which have been looked up.
struct Part {
  Batch* batch = nullptr;
  BatchRows rows;
};
Part begin_part(Learner& learner, const StepContext& context, Batch* batch, StepSections& sections) {
  Part part;
  part.batch = batch;
  if (part.batch == nullptr) return part;
  sections.enter(kLookupSection);
  context.comm.enter(context.step, kLookupSection);
  const TraceRange stage(context.compute, kEmbeddingStage);
  part.rows = look_up(learner, *part.batch, RowAccess::train);
  moves(context, 2 * bytes_of(part.rows.leaves));
  return part;
}

// Forward and backward pass of one part. The rows of `later`, if any, are looked up beside it, or come into
// caches. Adds the gradients of dense parameters to Parameter::gradient; `sums`, of the last part of several
// ranks, begins their sums.
void run_part(Learner& learner, const StepContext& context, Part part, const LaterPart* later,
              DenseSums* sums, StepSections& sections, PartResults& parts, StepResult& result) {
  const Batch& batch = *part.batch;
  const std::vector<Variable>& rows = part.rows.leaves;
  parts.bad_ids.insert(parts.bad_ids.end(), batch.bad_ids.begin(), batch.bad_ids.end());
  if (!learner.tables.device().is_host()) {
    const TraceRange stage(context.compute, kEmbeddingStage);
    context.compute.stream.wait(part.rows.ready);
  }

  sections.enter(kForwardSection);
  LookupAhead ahead(learner, context.comm, later);
  Tape tape(context.compute);
  const Variable logits = learner.model->forward(tape, batch, rows, context.draws);
  const Variable loss = learner.model->loss(tape, logits, batch);
  ahead.finish();  // before the sums of gradients
  parts.scores.push_back(scores_of(*learner.model, logits, batch, context.compute.stream));
  if (learner.gpus != nullptr) parts.exchanges = learner.gpus->begun();

  sections.enter(kBackwardSection);
  if (sums != nullptr) tape.on_final([&](const Parameter& parameter) { sums->begin(parameter); });
  tape.backward(loss, Tensor(learner.gradient_of_loss));
  if (sums != nullptr) sums->begin_rest();  // before the gradients of rows, on all ranks
  {
    const TraceRange stage(context.compute, kEmbeddingStage);
    // Before the tables' stream waits for the gradients.
    if (const Batch* const next = later != nullptr ? later->if_built() : nullptr)
      prefetch_rows(learner, *next);
    std::vector<Tensor> gradients;
    gradients.reserve(rows.size());
    for (const Variable& leaf : rows) gradients.push_back(leaf.gradient());
    learner.tables.stream().wait(context.compute.stream);
    if (learner.tables.any_limits()) {
      count_visits(learner, batch, part.rows.selection, parts.visits);
      parts.time = std::max(parts.time, latest_time(learner, batch));
    }
    if (learner.gpus != nullptr) context.comm.enter("row gradients");
    parts.row_gradients.add(std::move(part.rows.selection), std::move(gradients));
  }
  sections.leave();
  parts.row_bytes += bytes_of(rows);
  parts.losses.push_back(loss.value());
  result.samples += batch.samples;
  result.tokens += batch.tokens;
  result.flops += learner.model->flops(batch);
}

}  // namespace

void moves(const StepContext& context, std::int64_t bytes) {
  if (context.compute.trace != nullptr) context.compute.trace->moves(bytes);
}

void compute_parts(Learner& learner, const StepContext& context, Batch* first, const NextPart& next_part,
                   const LaterPart* later, StepSections& sections, PartResults& parts, StepResult& result) {
  learner.model->parameters().clear_gradients(context.compute.stream);
  DenseSums sums(learner.model->parameters(), context.comm, learner.gpus.get(), context.compute,
                 learner.exchange);
  for (Part part = begin_part(learner, context, first, sections); part.batch != nullptr;) {
    Part following = begin_part(learner, context, next_part(), sections);  // beside this one's computation
    const bool is_last = following.batch == nullptr;
    const Batch& batch = *part.batch;
    const auto run = [&] {
      run_part(learner, context, std::move(part), is_last ? later : nullptr,
               is_last && context.comm.size() > 1 ? &sums : nullptr, sections, parts, result);
    };
    if (is_step_a_group(learner))
      run();
    else
      with_launches_of(learner, batch, run);
    part = std::move(following);
  }
  sections.enter(kUpdateSection);
  sums.finish();
  context.comm.enter("row gradients");
  parts.row_gradients.merge(context.comm);
  sums.wait();
}

}  // namespace hstu
