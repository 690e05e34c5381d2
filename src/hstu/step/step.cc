#include "hstu/step/step.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/faults.h"
#include "hstu/base/finite.h"
#include "hstu/batching/loader.h"
#include "hstu/experiment/over_ranks.h"
#include "hstu/optimizer/clipping.h"
#include "hstu/step/dense_shards.h"
#include "hstu/step/launches.h"
#include "hstu/step/predictions.h"
#include "hstu/step/step_parts.h"

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

// Of the first task. `bad`: which score is not finite, if one is; the loss and gradients may say why.
RankingSamples predictions_of(const Learner& learner, const PartResults& parts, const StepContext& context,
                              std::string& bad) {
  const TraceRange stage(context.compute, kPredictionsStage);
  if (learner.gpus != nullptr) learner.gpus->wait(parts.exchanges);
  RankingSamples mine;
  try {
    for (const Scores& scores : parts.scores) {
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

namespace {

// About eight steps of each line of the log.
bool is_timed(const Learner& learner, std::int64_t step) {
  return (step + 1) % std::max<std::int64_t>(1, learner.options.metrics.every_steps / 8) == 0;
}

}  // namespace

struct QueuedStep::State {
  State(Learner& trained, StepContext of_step)
      : learner(trained),
        context(std::move(of_step)),
        sections(context.compute, is_timed(trained, context.step)),
        parts(learner.tables),
        updates_before(learner.dense_optimizer.steps()) {}

  void sum_squares();
  void update();
  void take_figures();
  void refuse_bad_values(const std::string& bad_score) const;

  Learner& learner;
  StepContext context;
  StepSections sections;
  StepResult result;
  PartResults parts;
  std::int64_t updates_before;
  std::optional<GradientSquares> squares;
  std::optional<UpdateOutcome> outcome;  // of a GPU that has decided about the update
};

// Of all that has to be finite if a GPU decides about the update, otherwise of the dense gradients.
void QueuedStep::State::sum_squares() {
  const bool decides = learner.update_check != nullptr && parts.losses.size() == 1;
  std::vector<Tensor> also;
  if (decides) {
    also = parts.row_gradients.all();
    also.push_back(parts.scores.front().logits);
  }
  const TraceRange stage(context.compute, kOptimizerStage);
  moves(context, learner.model->parameters().count() * std::int64_t{sizeof(float)});
  squares.emplace(learner.model->parameters().all(), context.compute, also);
  if (decides)
    outcome =
        learner.update_check->judge(*squares, parts.losses.front(), learner.options.dense.max_gradient_norm);
}

void QueuedStep::State::update() {
  const float* const factor = outcome ? learner.update_check->factor() : nullptr;
  {
    const TraceRange stage(context.compute, kOptimizerStage);
    if (factor != nullptr)
      learner.dense_optimizer.step(result.lr_dense, factor);
    else
      learner.dense_optimizer.step(result.lr_dense,
                                   clip_scale(result.gradient_norm, learner.options.dense.max_gradient_norm));
    moves(context, learner.dense_optimizer.step_bytes());
    gather_values(learner.dense_optimizer, context.comm, learner.gpus.get());
  }
  fault_point("step.middle");
  const TraceRange stage(context.compute, kEmbeddingStage);
  learner.tables.begin_updates(context.step);
  if (factor != nullptr) learner.tables.stream().wait(context.compute.stream);
  parts.row_gradients.apply(result.lr_sparse, factor);
  parts.visits.end_step(context.comm, parts.time);
  learner.tables.end_step();
  if (learner.ahead.lookup != nullptr) learner.ahead.lookup->find_changed();
  moves(context, 3 * parts.row_bytes);  // gradients and rows read, rows written
  // The memory of gradients may be used again.
  if (!learner.tables.device().is_host()) context.compute.stream.wait(learner.tables.stream());
}

void QueuedStep::State::take_figures() {
  if (learner.gpus != nullptr) learner.gpus->wait(learner.gpus->begun());
  for (const Tensor& loss : parts.losses)
    result.loss += outcome ? outcome->loss() : loss.to_host(context.compute.stream).data<float>()[0];
  context.comm.enter("counts");
  sum_over_ranks(result, context.comm);
  learner.bad_ids.add(gather(parts.bad_ids, context.comm));
  result.gradient_norm = outcome ? outcome->gradient_norm() : squares->norm();
}

void QueuedStep::State::refuse_bad_values(const std::string& bad_score) const {
  if (outcome && outcome->is_updated()) return;
  const auto bad_row = parts.row_gradients.first_bad();
  if (outcome) {
    learner.dense_optimizer.set_steps(updates_before);
    learner.update_check->reset();
  }
  if (!std::isfinite(result.loss))
    fail_not_finite(learner, context, fmt::format("the loss is {}", result.loss));
  if (!std::isfinite(result.gradient_norm)) {
    fail_not_finite(learner, context, fmt::format("the gradient of {} is not finite", squares->first_bad()));
  }
  if (bad_row) {
    fail_not_finite(learner, context,
                    fmt::format("the gradient of id {} in embedding table {} is not finite", bad_row->id,
                                learner.tables[bad_row->table].config().name));
  }
  if (!bad_score.empty()) throw NotFiniteError(bad_score);
  require(!outcome, "step {}: the GPU refused an update of finite values", context.step + 1);
}

QueuedStep::QueuedStep(std::unique_ptr<State> state) : state_(std::move(state)) {}
QueuedStep::QueuedStep(QueuedStep&&) noexcept = default;
QueuedStep& QueuedStep::operator=(QueuedStep&&) noexcept = default;
QueuedStep::~QueuedStep() = default;

bool QueuedStep::may_wait() const {
  constexpr std::int64_t kLittle = std::int64_t{64} << 20;  // of gradients of rows
  return state_->outcome && state_->parts.row_bytes <= kLittle;
}

QueuedStep begin_step(Learner& learner, const StepContext& context, const NextPart& next_part,
                      const LaterPart* later) {
  const RunOptions& options = learner.options;
  require(learner.tables.comm().size() == context.comm.size(), "a step of {} ranks with tables that {} share",
          context.comm.size(), learner.tables.comm().size());
  auto step = std::make_unique<QueuedStep::State>(learner, context);
  step->result.lr_dense = learning_rate(options.schedule, options.dense.learning_rate).at(context.step);
  step->result.lr_sparse = learning_rate(options.schedule, options.sparse.learning_rate).at(context.step);
  Batch* const first = next_part();
  const auto put = [&] {
    compute_parts(learner, context, first, next_part, later, step->sections, step->parts, step->result);
    step->sum_squares();
    if (step->outcome) step->update(), step->sections.leave();
  };
  if (first != nullptr && is_step_a_group(learner))
    with_launches_of(learner, *first, put);
  else
    put();
  return QueuedStep(std::move(step));
}

StepResult QueuedStep::finish() {
  State& step = *state_;
  const Learner& learner = step.learner;
  StepResult& result = step.result;
  // The host turns scores into metrics while a GPU still computes the rest.
  std::string bad_score;
  result.predictions = predictions_of(learner, step.parts, step.context, bad_score);
  if (step.context.on_predictions) step.context.on_predictions(result.predictions);
  step.take_figures();
  step.refuse_bad_values(bad_score);  // before any update
  if (!step.outcome) step.update();
  result.stages = step.sections.times();
  result.memory_peak = learner.compute.memory->figures().peak;
  if (learner.tables.context().memory != learner.compute.memory)
    result.memory_peak += learner.tables.context().memory->figures().peak;
  if (learner.gpus != nullptr) result.memory_peak += learner.exchange.memory->figures().peak;
  return std::move(result);
}

StepResult train_step(Learner& learner, const StepContext& context, const NextPart& next_part,
                      const LaterPart* later) {
  return begin_step(learner, context, next_part, later).finish();
}

}  // namespace hstu
