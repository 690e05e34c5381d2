#include "hstu/training/step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/faults.h"
#include "hstu/base/finite.h"
#include "hstu/batching/loader.h"
#include "hstu/embedding/row_gradients.h"
#include "hstu/embedding/row_visits.h"
#include "hstu/optimizer/clipping.h"
#include "hstu/training/dense_shards.h"
#include "hstu/training/dense_sums.h"
#include "hstu/training/lookup_ahead.h"
#include "hstu/training/over_ranks.h"
#include "hstu/training/predictions.h"
#include "hstu/training/step_sections.h"

namespace hstu {
namespace {

bool is_finite(const Tensor& tensor) {
  return first_not_finite(tensor.data<float>(), tensor.size()) == tensor.size();
}

// The first tensor that is not finite, for the message: parameters first, then table rows.
std::string first_bad_input(const Learner& learner) {
  const Stream& stream = learner.compute.stream;
  for (const Parameter* parameter : learner.model->parameters().all()) {
    if (!is_finite(parameter->value.to_host(stream))) return "parameter " + parameter->name;
  }
  for (std::size_t t = 0; t < learner.tables.size(); ++t) {
    const EmbeddingTable& table = learner.tables[t];
    const std::vector<EmbeddingTable::Place> places = table.places_by_id();
    constexpr std::size_t kAtATime = 1 << 14;
    std::vector<float> rows(std::min(kAtATime, places.size()) * static_cast<std::size_t>(table.width()));
    for (std::size_t first = 0; first < places.size(); first += kAtATime) {
      const auto some = std::span(places).subspan(first, std::min(kAtATime, places.size() - first));
      table.read(some, rows.data(), nullptr);
      for (std::size_t i = 0; i < some.size(); ++i)
        if (!all_finite(rows.data() + static_cast<std::int64_t>(i) * table.width(), table.width()))
          return fmt::format("row {} of embedding table {}", some[i].id, table.config().name);
    }
  }
  return "an activation";
}

[[noreturn]] void fail_not_finite(const Learner& learner, const StepContext& context,
                                  const std::string& what) {
  throw NotFiniteError(fmt::format("step {}: {}; the first bad tensor is {}", context.step + 1, what,
                                   first_bad_input(learner)));
}

constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

std::int64_t latest_time(const Learner& learner, const Batch& batch) {
  std::int64_t time = kNoTime;
  if (learner.event_times == nullptr) return time;
  for (const std::int64_t position : batch.values<std::int64_t>(kPositionColumn))
    time = std::max(time, (*learner.event_times)[position]);
  return time;
}

// The results of a step's parts, read only after all parts have been computed.
struct Gathered {
  explicit Gathered(TableSet& tables) : row_gradients(tables), visits(tables) {}
  RowGradients row_gradients;
  RowVisits visits;
  std::int64_t time = kNoTime;  // of the latest sample
  std::int64_t row_bytes = 0;   // of the rows, and of their gradients
  std::vector<Tensor> losses;   // (1) each
  std::vector<BadIdCount> bad_ids;
  std::vector<Scores> scores;
  std::int64_t exchanges = 0;  // between GPUs, begun before the last scores
};

// Reports to the trace what the current stage reads and writes.
void moves(const StepContext& context, std::int64_t bytes) {
  if (context.compute.trace != nullptr) context.compute.trace->moves(bytes);
}

std::int64_t bytes_of(const std::vector<Variable>& rows) {
  std::size_t bytes = 0;
  for (const Variable& leaf : rows) bytes += leaf.value().bytes();
  return static_cast<std::int64_t>(bytes);
}

// Looks up the rows of the next part; none after the last.
struct Part {
  Batch* batch = nullptr;
  BatchRows rows;
};
Part begin_part(Learner& learner, const StepContext& context, const NextPart& next_part,
                StepSections& sections) {
  Part part;
  part.batch = next_part();
  if (part.batch == nullptr) return part;
  sections.enter(kLookupSection);
  context.comm.enter(context.step, kLookupSection);
  const TraceRange stage(context.compute, kEmbeddingStage);
  part.rows = look_up(learner, *part.batch, RowAccess::train);
  moves(context, 2 * bytes_of(part.rows.leaves));
  return part;
}

// Forward and backward pass of one part. The rows of `later`, if any, are looked up beside it, or come into
// caches. Adds the gradients of dense parameters to Parameter::gradient; `sums`, of the last part, begins
// their sums over ranks.
void run_part(Learner& learner, const StepContext& context, Part part, const LaterPart* later,
              DenseSums* sums, StepSections& sections, Gathered& gathered, StepResult& result) {
  const Batch& batch = *part.batch;
  const std::vector<Variable>& rows = part.rows.leaves;
  gathered.bad_ids.insert(gathered.bad_ids.end(), batch.bad_ids.begin(), batch.bad_ids.end());
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
  gathered.scores.push_back(scores_of(*learner.model, logits, batch, context.compute.stream));
  if (learner.gpus != nullptr) gathered.exchanges = learner.gpus->begun();

  sections.enter(kBackwardSection);
  if (sums != nullptr) tape.on_final([&](const Parameter& parameter) { sums->begin(parameter); });
  tape.backward(loss);
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
      count_visits(learner, batch, part.rows.selection, gathered.visits);
      gathered.time = std::max(gathered.time, latest_time(learner, batch));
    }
    if (learner.gpus != nullptr) context.comm.enter("row gradients");
    gathered.row_gradients.add(std::move(part.rows.selection), std::move(gradients));
  }
  sections.leave();
  gathered.row_bytes += bytes_of(rows);
  gathered.losses.push_back(loss.value());
  result.samples += batch.samples;
  result.tokens += batch.tokens;
  result.flops += learner.model->flops(batch);
}

GradientSquares squares_of(const Learner& learner, const StepContext& context) {
  const TraceRange stage(context.compute, kOptimizerStage);
  moves(context, learner.model->parameters().count() * std::int64_t{sizeof(float)});
  return GradientSquares(learner.model->parameters().all(), context.compute);
}

double sum_of_losses(const Gathered& gathered, const Context& context) {
  double sum = 0;
  for (const Tensor& loss : gathered.losses) sum += loss.to_host(context.stream).data<float>()[0];
  return sum;
}

// Of the first task. `bad`: which score is not finite, if one is; the loss and gradients may say why.
RankingSamples predictions_of(const Learner& learner, const Gathered& gathered, const StepContext& context,
                              std::string& bad) {
  const TraceRange stage(context.compute, kPredictionsStage);
  if (learner.gpus != nullptr) learner.gpus->wait(gathered.exchanges);
  RankingSamples mine;
  try {
    for (const Scores& scores : gathered.scores) {
      learner.copies.wait(scores.ready);
      add_predictions(*learner.model, scores, learner.copies, std::span(&mine, 1));
    }
  } catch (const NotFiniteError& error) {
    bad = error.what();
  }
  context.comm.enter(kPredictionsStage);
  return gather(mine, context.comm);
}

}  // namespace

LaterPart later_part(Loader& loader) {
  return {[&] { return loader.later(); }, [&] { return loader.await_later(); }};
}

StepResult train_step(Learner& learner, const StepContext& context, const NextPart& next_part,
                      const LaterPart* later) {
  const RunOptions& options = learner.options;
  require(learner.tables.comm().size() == context.comm.size(), "a step of {} ranks with tables that {} share",
          context.comm.size(), learner.tables.comm().size());
  StepSections sections(context.compute);
  StepResult result;
  result.lr_dense = learning_rate(options.schedule, options.dense.learning_rate).at(context.step);
  result.lr_sparse = learning_rate(options.schedule, options.sparse.learning_rate).at(context.step);

  // 1. Forward and backward passes, part by part.
  learner.model->parameters().clear_gradients(context.compute.stream);
  Gathered gathered(learner.tables);
  DenseSums sums(learner.model->parameters(), context.comm, learner.gpus.get(), context.compute,
                 learner.exchange);
  for (Part part = begin_part(learner, context, next_part, sections); part.batch != nullptr;) {
    Part following = begin_part(learner, context, next_part, sections);  // beside the computation of this one
    const bool is_last = following.batch == nullptr;
    run_part(learner, context, std::move(part), is_last ? later : nullptr, is_last ? &sums : nullptr,
             sections, gathered, result);
    part = std::move(following);
  }
  sections.enter(kUpdateSection);

  // 2. Sums over the global batch. Every term is already divided by its number of supervised examples.
  sums.finish();
  context.comm.enter("row gradients");
  gathered.row_gradients.merge(context.comm);
  sums.wait();
  const GradientSquares squares = squares_of(learner, context);

  // 3. The host turns scores into metrics while a GPU still computes all this.
  std::string bad_score;
  result.predictions = predictions_of(learner, gathered, context, bad_score);
  if (context.on_predictions) context.on_predictions(result.predictions);

  // 4. Refuse values that are not finite, before any update.
  if (learner.gpus != nullptr) learner.gpus->wait(learner.gpus->begun());
  const auto bad_row = gathered.row_gradients.first_bad();
  result.loss = sum_of_losses(gathered, context.compute);
  context.comm.enter("counts");
  sum_over_ranks(result, context.comm);
  learner.bad_ids.add(gather(gathered.bad_ids, context.comm));
  result.gradient_norm = squares.norm();
  if (!std::isfinite(result.loss))
    fail_not_finite(learner, context, fmt::format("the loss is {}", result.loss));
  if (!std::isfinite(result.gradient_norm)) {
    fail_not_finite(learner, context, fmt::format("the gradient of {} is not finite", squares.first_bad()));
  }
  if (bad_row) {
    fail_not_finite(learner, context,
                    fmt::format("the gradient of id {} in embedding table {} is not finite", bad_row->id,
                                learner.tables[bad_row->table].config().name));
  }
  if (!bad_score.empty()) throw NotFiniteError(bad_score);

  // 5. Update.
  {
    const TraceRange stage(context.compute, kOptimizerStage);
    learner.dense_optimizer.step(result.lr_dense,
                                 clip_scale(result.gradient_norm, options.dense.max_gradient_norm));
    moves(context, learner.dense_optimizer.step_bytes());
    gather_values(learner.dense_optimizer, context.comm, learner.gpus.get());
  }
  fault_point("step.middle");
  {
    const TraceRange stage(context.compute, kEmbeddingStage);
    learner.tables.begin_updates(context.step);
    gathered.row_gradients.apply(result.lr_sparse);
    gathered.visits.end_step(context.comm, gathered.time);
    learner.tables.end_step();
    if (learner.ahead.lookup != nullptr) learner.ahead.lookup->find_changed();
    moves(context, 3 * gathered.row_bytes);  // gradients and rows read, rows written
    // The memory of gradients may be used again.
    if (!learner.tables.device().is_host()) context.compute.stream.wait(learner.tables.stream());
  }
  result.stages = sections.times();
  result.memory_peak = context.compute.memory->figures().peak;
  if (learner.tables.context().memory != context.compute.memory)
    result.memory_peak += learner.tables.context().memory->figures().peak;
  if (learner.gpus != nullptr) result.memory_peak += learner.exchange.memory->figures().peak;
  return result;
}

}  // namespace hstu
