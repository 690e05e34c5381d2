#include "hstu/training/train.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"
#include "hstu/base/faults.h"
#include "hstu/base/terminal.h"
#include "hstu/run/bad_id_warning.h"
#include "hstu/run/base_cadence.h"
#include "hstu/run/cadence.h"
#include "hstu/run/log.h"
#include "hstu/run/resume.h"
#include "hstu/run/state.h"
#include "hstu/training/data_growth.h"
#include "hstu/training/open_run.h"
#include "hstu/training/run_parts.h"
#include "hstu/training/session.h"

namespace hstu {
namespace {

// The leader: the state of a run, and the decisions when to evaluate, save and stop. It alone writes.
class Leader {
 public:
  // `stepped` is set after a step.
  Leader(const TrainRequest& request, OpenedRun opened, bool& stepped)
      : request_(request),
        opened_(std::move(opened)),
        session_(*opened_.session),
        stepped_(stepped),
        growth_(growth_of(session_, opened_.checkpoint)),
        evaluates_others_(growth_ || change_evaluations(opened_.changed)),
        state_(state_to_continue(session_.first_state(), evaluates_others_, request.options.checkpoint.best)),
        last_step_(session_.experiment().last_step(state_.step, state_.next)),
        evaluation_cadence_(evaluation_cadence(request.options, session_.experiment())),
        record_(rewind()),
        log_(request.folder.metrics(), facts(), request.options.metrics, state_.samples,
             session_.experiment().samples_until(last_step_), record_.training_seconds),
        save_cadence_(request.options.checkpoint, Clock::now()),
        bases_(request.options.checkpoint, opened_.checkpoint) {
    if (request.options.mlperf && opened_.checkpoint && !record_.ended)
      opened_.submission = continue_submission(request, session_, state_);
  }

  TrainResult run() {
    if (record_.ended) {
      print_note("{} has already ended: nothing is left to do\n", request_.folder.path.string());
      session_.announce_end();
      return finish(*finished());
    }
    try {
      TrainResult result = train();
      session_.announce_end();
      return result;
    } catch (const NotFiniteError& error) {
      fail_not_finite(request_.folder, error.what());
    }
  }

 private:
  TrainResult train() {
    begin_log();
    const bool next_window = request_.options.evaluation.next_window;
    if (!next_window && !session_.can_evaluate()) {
      print_note(
          "no evaluation: nothing is held out; evaluation.holdout_fraction = 0.1 holds out the latest tenth "
          "(hstu config --template --for DATASET writes a whole configuration)\n");
    }
    fault_point("open");
    const bool evaluates_first = state_.step == 0 && request_.options.evaluation.at_start;
    // The window that begins now may be of new data, or the key may be new.
    if (next_window && state_.window_end && !state_.evaluation_due && state_.evaluated_at != state_.step &&
        session_.can_evaluate())
      evaluate();
    auto reason =
        evaluates_first || state_.evaluation_due || finished() ? settle(evaluates_first) : reason_to_end();
    if (!reason) reason = loop();
    session_.finish_profile();
    fault_point("end");
    log_.end(*reason, state_);
    return finish(*reason);
  }

  RunFacts facts() const {
    RunFacts facts = facts_of(session_.experiment());
    facts.version = request_.version;
    if (facts.peak_flops)
      *facts.peak_flops *= session_.ranks();  // as the FLOPs of its lines are of all ranks
    facts.warm_start = session_.warm_start();
    facts.planned_memory = opened_.planned_memory;
    return facts;
  }

  // Resets the folder to the state of the checkpoint: removes later log lines and checkpoints, and files of
  // interrupted saves. A run without a checkpoint starts from the beginning.
  LogRecord rewind() {
    const RunFolder& folder = request_.folder;
    if (!opened_.checkpoint) {
      std::filesystem::remove(folder.metrics());
      return {};
    }
    saved_at_ = state_.step;
    LogRecord record = read_log(folder.metrics(), *opened_.checkpoint);
    record.ended = record.ended && finished();
    abandon_later(folder, state_.step);
    if (!record.ended) rewind_log(folder.metrics(), *opened_.checkpoint);
    tidy(opened_.checkpoint->path());
    print_note("continuing from {} (step {})\n", opened_.checkpoint->path().string(), state_.step);
    // --from-step may go back to a time whose best checkpoint was removed when a better one came.
    if (state_.best.step >= 0 && !linked_checkpoint(folder.checkpoints(), kBestLink)) {
      print_note(
          "WARNING: the best checkpoint of that time, of step {}, does not exist any more: none is the best "
          "until "
          "an evaluation is better\n",
          state_.best.step);
    }
    return record;
  }

  // Writes the log's `resume` line before the new configuration: if the process dies between the two, the run
  // still has its old configuration.
  void begin_log() {
    if (!record_.begun) log_.begin();
    if (!request_.resume) return;
    log_.resume(state_, opened_.changed, growth_, evaluates_others_);
    const std::string config = to_toml(request_.options);
    if (read_file(request_.folder.config()) != config) write_file(request_.folder.config(), config);
  }

  // Trains until there is a reason to stop, and returns the reason. Where a GPU needs no answer of the host,
  // the next step begins before the results of this one are read, so that the GPU always has work.
  std::string loop() {
    std::optional<BegunStep> following;
    last_completed_ = Clock::now();
    while (true) {
      BegunStep current = following ? *std::exchange(following, std::nullopt) : begin();
      if (current.step.next_may_begin() && !asks_for_results(current)) following = begin();
      complete(current);
      if (following) continue;
      if (const auto reason = settle()) return *reason;
      last_completed_ = Clock::now();
    }
  }

  BegunStep begin() {
    BegunStep begun =
        session_.begin_step([this](const Tally& predictions) { session_.metrics().add_step(predictions); });
    wait_ms_ += begun.wait_ms;
    return begun;
  }

  // Whether the step's results or the state after it are needed before the next step begins.
  bool asks_for_results(const BegunStep& begun) const {
    RunState after;
    after.step = state_.step + 1;
    after.next = begun.next;
    after.window_end = begun.window_end;
    after.windows_done = state_.windows_done + (begun.window_end ? 1 : 0);
    return session_.measures(after.step) || stopped() || after.step >= last_step_ ||
           session_.logs_at(after.step) || evaluation_cadence_.due(after) ||
           save_cadence_.due(after, Clock::now());
  }

  void complete(BegunStep& begun) {
    const Session::StepOutcome outcome = session_.finish_step(begun);
    ++state_.step;
    stepped_ = true;
    others_stop_ = outcome.any_stops;
    state_.next = begun.next;
    state_.window_end = begun.window_end;
    if (begun.window_end) ++state_.windows_done;
    const Clock::time_point before = std::exchange(last_completed_, Clock::now());
    const double wait_ms = std::exchange(wait_ms_, 0);
    times_.push_back({1000 * seconds_between(before, last_completed_) - wait_ms, wait_ms});
    count(outcome.steps, outcome.counts);
    if (session_.profiler().is_complete()) session_.finish_profile();
  }

  // Counts steps when all ranks have shared them. `counts`: the last one has a line of the log.
  void count(const Session::SharedSteps& steps, const std::optional<LearnerCounts>& counts = std::nullopt) {
    if (steps.predictions) session_.metrics().add_step(*steps.predictions);
    for (std::size_t i = 0; i < steps.results.size(); ++i) {
      state_.samples += steps.results[i].samples;
      if (counts && opened_.submission && i + 1 == steps.results.size())
        opened_.submission->loss(state_.step, state_.mean_loss_with(steps.results[i].loss),
                                 steps.results[i].lr_dense);
      log_.step(steps.results[i], times_.front(), state_, session_.metrics(),
                i + 1 == steps.results.size() ? counts : std::nullopt);
      times_.pop_front();
    }
  }

  // Evaluates, then saves, as the step requires: a checkpoint contains the evaluation of its step. Returns
  // the reason to end, if any.
  std::optional<std::string> settle(bool evaluates_anyway = false) {
    // A submission evaluates at the points of its grid alone.
    const bool ends = state_.step >= last_step_ && !request_.options.mlperf;
    const bool due = evaluates_anyway || state_.evaluation_due || ends || evaluation_cadence_.due(state_);
    if (due && state_.evaluated_at != state_.step && session_.can_evaluate()) {
      count(session_.share_steps());
      evaluate();
    }
    auto end = reason_to_end();
    const auto reason = reason_to_save(end);
    if (end || reason) count(session_.share_steps());
    if (reason) save(*reason, end.has_value());
    return end;
  }

  void evaluate() {
    std::optional<EvaluationResult> result;
    if (!stopped()) {
      if (opened_.submission) opened_.submission->begin_evaluation(state_.step);
      result = session_.evaluate();
      others_stop_ = !result;
    }
    state_.evaluation_due = !result.has_value();
    if (!result) return;
    state_.evaluation = result;
    state_.evaluated_at = state_.step;
    if (opened_.submission)
      opened_.submission->end_evaluation(state_.step, result->find(metrics().front().name),
                                         finished() == "target");
    best_before_ = state_.best;
    state_.best.add(*result, metrics(), state_.step, request_.options.evaluation.min_delta);
    evaluated_since_save_ = true;
    session_.metrics().add_evaluation(session_.evaluator().tally());
    log_.evaluation(*result, state_, session_.metrics());
  }

  MetricSpecs metrics() const { return request_.options.model.metrics(); }

  bool stopped() const { return others_stop_ || (request_.stop != nullptr && *request_.stop); }

  std::optional<std::string> finished() const {
    const double target = request_.options.evaluation.target_auc;
    const bool evaluated = state_.evaluation && state_.evaluated_at == state_.step;
    if (target > 0 && evaluated && reaches(metrics().front(), *state_.evaluation, target)) return "target";
    if (state_.step >= last_step_) return "completed";
    const std::int64_t patience = request_.options.evaluation.patience;
    if (patience > 0 && evaluated && state_.best.stale >= patience) return "patience";
    return std::nullopt;
  }

  std::optional<std::string> reason_to_end() const {
    if (state_.evaluation_due) return "interrupted";
    if (auto reason = finished()) return reason;
    if (stopped()) return "interrupted";
    return std::nullopt;
  }

  // Two saves of one step never have the same reason, because the log distinguishes them by it.
  std::optional<std::string> reason_to_save(const std::optional<std::string>& end) const {
    const bool saved = saved_at_ == state_.step;
    if ((saved && !evaluated_since_save_) || request_.options.checkpoint.never()) return std::nullopt;
    if (end && *end != "interrupted" && request_.options.checkpoint.final) return "end_of_run";
    if (end && (saved || state_.step == 0)) return std::nullopt;  // a resume repeats what is not saved
    if (state_.evaluation_due) return "interrupted";
    if (evaluated_since_save_ && state_.best.step == state_.step) return "best_evaluation";
    const auto reason = save_cadence_.due(state_, Clock::now());
    return !reason && end == "interrupted" ? end : reason;
  }

  // `last`: no other save follows.
  void save(const std::string& reason, bool last) {
    fault_point("save.begin");
    Path path;
    const std::optional<CheckpointBase> base = bases_.base_of(state_.step, reason);
    bool failed = false;
    session_.save([&](std::vector<Section> all, ServedRows& rows) {
      failed = !write_checkpoint(std::move(all), rows, reason, last, base, path);
    });
    if (failed) return;
    saved_at_ = state_.step;
    evaluated_since_save_ = false;
    tidy(path);
    save_cadence_.saved(Clock::now());
    fault_point("save.end");
  }

  // False if that failed, which was reported. An Error ends the run: `last`, no other save follows.
  bool write_checkpoint(std::vector<Section> all, ServedRows& rows, const std::string& reason, bool last,
                        const std::optional<CheckpointBase>& base, Path& path) {
    const Clock::time_point start = Clock::now();
    try {
      path = save_run(
          request_.folder.checkpoints(),
          origin_of(session_.experiment(), request_.options, opened_.checkpoint), state_, reason,
          std::move(all), [&] { log_.checkpoint(state_, reason, seconds_since(start)); }, base);
      if (!base) rows.begin_changes();
      bases_.saved(path, base);
      return true;
    } catch (const InternalError&) {
      throw;
    } catch (const NotFiniteError& error) {
      throw NotFiniteError(fmt::format("step {}: nothing is saved, because {}", state_.step, error.what()));
    } catch (const Error& error) {
      log_.checkpoint_failed(state_, reason, error.what());
      save_cadence_.saved(Clock::now());
      check(
          !last,
          "the last save failed: {}. Everything after the newest checkpoint is lost; correct the cause, then "
          "continue with hstu train --resume {}",
          error.what(), request_.folder.path.string());
      // The best checkpoint is one that exists.
      if (state_.best.step == state_.step) {
        state_.best.step = best_before_.step;
        state_.best.value = best_before_.value;
      }
      return false;
    }
  }

  // A failure to update the link or to remove old folders does not end the run.
  void tidy(const Path& newest) {
    const Path checkpoints = request_.folder.checkpoints();
    try {
      fault_point("save.renamed");
      set_link(checkpoints, kCurrentLink, newest);
      link_best(checkpoints, state_.best);
      fault_point("save.prune");
      clear_leftovers(checkpoints);
      prune_checkpoints(checkpoints, state_.step, request_.options.checkpoint.keep, state_.best.step);
    } catch (const Error& error) {
      print_note("\nWARNING: {}\n", error.what());
    }
  }

  TrainResult finish(const std::string& reason) {
    const EvaluationResult* const last = state_.evaluation ? &*state_.evaluation : nullptr;
    const double samples = static_cast<double>(state_.samples - samples_without_time_);
    const double seconds = log_.training_seconds();
    TrainResult result{reason, state_.step, state_.samples, seconds > 0 ? samples / seconds : 0};
    result.evaluation = state_.evaluation;
    result.metrics = metrics();
    result.best = state_.best;
    result.warning = bad_id_warning(session_.experiment().learner().bad_ids.features(), last);
    write_summary(request_.folder, result, state_, metrics(), seconds);
    return result;
  }

  const TrainRequest& request_;
  OpenedRun opened_;
  Session& session_;
  bool& stepped_;
  std::optional<DataGrowth> growth_;
  bool evaluates_others_;  // other samples than before the resume
  RunState state_;
  std::int64_t last_step_;
  EvaluationCadence evaluation_cadence_;
  Clock::time_point last_completed_;  // the last step, or what followed it
  double wait_ms_ = 0;                // for batches, since then
  std::deque<StepTime> times_;        // of steps that are not counted
  std::int64_t saved_at_ = -1;
  bool evaluated_since_save_ = false;
  BestEvaluation best_before_;  // before the last evaluation
  bool others_stop_ = false;    // a rank got the signal to stop
  LogRecord record_;
  std::int64_t samples_without_time_ = record_.begun ? 0 : state_.samples;
  RunLog log_;
  SaveCadence save_cadence_;
  BaseCadence bases_;
};

}  // namespace

TrainResult train(const TrainRequest& request, Communicator& comm) {
  bool stepped = request.resume;
  try {
    return Leader(request, open_run(request, comm), stepped).run();
  } catch (...) {
    if (!stepped) discard_run_folder(request.folder);
    throw;
  }
}

}  // namespace hstu
