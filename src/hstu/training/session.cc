#include "hstu/training/session.h"

#include <span>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/faults.h"
#include "hstu/base/terminal.h"
#include "hstu/experiment/device_choice.h"
#include "hstu/experiment/learner_without_data.h"
#include "hstu/experiment/over_ranks.h"
#include "hstu/run/text_rows.h"
#include "hstu/run/warm_start.h"
#include "hstu/step/dense_shards.h"
#include "hstu/training/run_parts.h"

namespace hstu {
namespace {

Experiment of_data(const RunOptions& options, std::unique_ptr<TaskData> data,
                   std::unique_ptr<Learner> learner, Communicator& comm) {
  if (learner && !is_learner_of(options, *learner, *data)) {
    print_note(
        "note: the dataset has other tables or actions than the configuration states: the model is made "
        "again\n");
    learner.reset();
  }
  return {options, std::move(data), comm, std::move(learner)};
}

}  // namespace

Session::Session(const TrainRequest& request, std::unique_ptr<TaskData> data, Communicator& comm,
                 const std::optional<Checkpoint>& checkpoint, std::unique_ptr<Learner> learner)
    : request_(request),
      comm_(comm),
      experiment_(of_data(request.options, std::move(data), std::move(learner), comm)),
      metrics_(running_metrics(experiment_)),
      first_state_(load(checkpoint)),
      evaluator_(
          request.options.evaluation.next_window
              ? nullptr
              : std::make_unique<Evaluator>(experiment_, is_leader() ? request.folder.baseline() : Path())),
      memory_watch_(request.options.metrics.memory_trim),
      attention_meter_(request.options.metrics.attention_every, experiment_.learner().model->layers().layers,
                       peak_flops(experiment_.device().device, request.options.precision)),
      watch_(comm.size() == 1 ? "" : fmt::format("rank {}: ", comm.rank()),
             request.options.training.silence_seconds),
      next_(first_state_.next),
      begun_(first_state_.step),
      finished_(first_state_.step) {
  if (is_leader()) begin_profile();  // refuses wrong steps before the others begin
  check_agreement(experiment_, request.version, first_state_.step, comm_);
  if (!is_leader()) begin_profile();
}

RunState Session::load(const std::optional<Checkpoint>& checkpoint) {
  Learner& learner = experiment_.learner();
  if (checkpoint) {
    RunState state = load_run(*checkpoint, experiment_.dataset(), sections(learner, *metrics_));
    state.next = experiment_.rescaled(state.next, state.window_end,
                                      saved_options(*checkpoint).training.samples_of_step());
    return state;
  }
  const WarmStartSection& section = request_.options.warm_start;
  if (section.checkpoint.empty()) return {};
  const Checkpoint other(section.checkpoint);
  WarmStartReport report = hstu::warm_start(section, other, learner.dense_optimizer, learner.tables,
                                            match_text_rows(other, request_.options, experiment_.dataset()),
                                            known_ids(request_.options, experiment_.dataset()));
  if (learner.tables.is_distributed()) {
    comm_.all_reduce_sum(std::span(&report.rows, 1));
    comm_.all_reduce_sum(std::span(&report.row_states, 1));
  }
  if (is_leader()) print_note("{}\n", to_text(report));
  if (!report.refusal.empty()) fail_usage("{}", report.refusal);
  warm_start_ = to_json(report);
  return {};
}

void Session::begin_profile() {
  Learner& learner = experiment_.learner();
  profiler_.emplace(request_.profiles, learner.compute, request_.folder.path, first_state_.step,
                    experiment_.last_step(first_state_.step, first_state_.next), comm_, learner.gpus.get());
}

void Session::announce(Command command) {
  if (is_leader()) hstu::announce(command, comm_);
}

BegunStep Session::begin_step(std::function<void(const Tally&)> on_predictions) {
  announce(Command::step);
  watch_.beat(begun_, kDataWait);
  if (is_leader()) fault_point("step.begin");
  if (!loader_) loader_ = training_loader(experiment_, first_state_.next, comm_);
  if (comm_.size() > 1 && !predictions_) {
    predictions_ = experiment_.learner().objective->step_tally();
    predictions_->keep_latest(request_.options.metrics.window_samples);
  }
  const StepContext context{.step = begun_++,
                            .draws = {},
                            .comm = comm_,
                            .watch = &watch_,
                            .unshared = predictions_,
                            .on_predictions = std::move(on_predictions)};
  BegunStep begun = begin_next(experiment_, *loader_, *profiler_, attention_meter_, context);
  next_ = begun.next;
  return begun;
}

Session::StepOutcome Session::finish_step(BegunStep& begun) {
  StepOutcome outcome;
  watch_.beat(finished_, "results");
  StepResult result = begun.step.finish();
  result.division = begun.division;
  if (is_leader()) fault_point("step.end");
  profiler_->end_step(++finished_, result);
  attention_meter_.end_step(finished_, result);
  steps_.push_back(std::move(result));
  outcome.any_stops = any_stops(request_.stop, comm_);
  if (finished_ == begun_) watch_.rest();
  if (comm_.size() == 1 || logs_at(finished_)) outcome.steps = take_steps();
  if (logs_at(finished_)) {
    outcome.counts = counts_of(experiment_.learner(), comm_);
    outcome.counts->attention = attention_meter_.take();
    outcome.counts->memory = memory_watch_.look(experiment_.learner().compute, comm_);
  }
  return outcome;
}

bool Session::can_evaluate() const {
  if (request_.options.evaluation.next_window) return window_to_score(experiment_, next_).has_value();
  return evaluator_->has_samples();
}

Session::SharedSteps Session::share_steps() {
  if (steps_.empty()) return {};
  announce(Command::share_steps);
  return take_steps();
}

Session::SharedSteps Session::take_steps() {
  comm_.enter("figures");
  SharedSteps steps{std::exchange(steps_, {}), nullptr};
  sum_over_ranks(steps.results, comm_);
  if (predictions_) predictions_->share(comm_);
  steps.predictions = std::exchange(predictions_, nullptr);
  return steps;
}

std::optional<EvaluationResult> Session::evaluate() {
  announce(Command::evaluate);
  if (request_.options.evaluation.next_window)
    evaluator_ =
        std::make_unique<Evaluator>(Evaluator::of_window(experiment_, *window_to_score(experiment_, next_)));
  watch_.beat(finished_ - 1, "evaluation");
  try {
    auto result = evaluator_->run(request_.stop, comm_, [this] { watch_.beat(); });
    watch_.rest();
    if (result && !request_.options.evaluation.next_window) evaluator_->prepare(comm_);
    return result;
  } catch (const NotFiniteError& error) {
    throw NotFiniteError(fmt::format("step {}: the evaluation: {}", finished_, error.what()));
  }
}

void Session::save(const WriteSections& write) {
  announce(Command::save);
  comm_.enter("save");
  watch_.beat(finished_ - 1, "save");
  Learner& learner = experiment_.learner();
  DenseState dense_state = gather_state(learner.dense_optimizer, comm_);
  if (!is_leader()) {
    serve_rows(learner.tables);
    watch_.rest();
    return;
  }
  std::vector<Section> all = sections(learner, *metrics_, std::move(dense_state));
  for (Section& section : all) {
    section.save = [this, save_section = std::move(section.save)](SectionWriter& writer) {
      watch_.beat();
      save_section(writer);
    };
  }
  ServedRows rows(learner.tables);
  write(std::move(all), rows);
  watch_.rest();
}

void Session::follow() {
  while (true) {
    switch (next_command(comm_)) {
      case Command::step: {
        BegunStep begun = begin_step();
        finish_step(begun);
        break;
      }
      case Command::share_steps:
        share_steps();
        break;
      case Command::profile:
        finish_profile();
        break;
      case Command::evaluate:
        evaluate();
        break;
      case Command::save:
        save();
        break;
      case Command::end:
        return;
    }
  }
}

void Session::announce_end() {
  announce(Command::end);
}

void follow(const TrainRequest& request, Communicator& comm) {
  const std::optional<Checkpoint> checkpoint = same_checkpoint(std::nullopt, request.folder, comm);
  std::unique_ptr<Learner> learner = learner_before_data(request.options, checkpoint, comm);
  Session(request, open_data(request.options, checkpoint), comm, checkpoint, std::move(learner)).follow();
}

}  // namespace hstu
