#include "hstu/training/train.h"

#include <chrono>
#include <cmath>

#include "hstu/base/text.h"
#include "hstu/batching/loader.h"
#include "hstu/training/run_log.h"
#include "hstu/training/run_state.h"
#include "hstu/training/step.h"

namespace hstu {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// One run: the experiment, where it stands, and when to evaluate, save and stop.
class Run {
 public:
  explicit Run(const TrainRequest& request)
      : request_(request),
        experiment_(request.options),
        state_(request.resume ? resume() : RunState{}),
        evaluator_(experiment_),
        total_samples_(request.options.training.epochs * experiment_.schedule({}).samples_per_epoch()),
        log_(request.folder.metrics(), experiment_, request.version, request.resume, total_samples_) {}

  TrainResult run() {
    const auto& evaluation = request_.options.evaluation;
    if (state_.step == 0 && evaluation.at_start) evaluate(0);
    std::string reason = loop();
    if (reason != "interrupted" && evaluator_.has_samples() && evaluated_at_ != state_.step)
      evaluate(last_window_);
    if (saved_at_ != state_.step) save();
    log_.end(reason, state_);
    return finish(reason);
  }

 private:
  RunState resume() {
    const Path checkpoint = find_checkpoint(request_.folder.checkpoints(), -1);
    const RunState state = load_run(checkpoint, experiment_);
    remove_lines_after(request_.folder.metrics(), state.step);
    fmt::print(stderr, "going on from {} (step {})\n", checkpoint.string(), state.step);
    return state;
  }

  // Steps until there is a reason to stop.
  std::string loop() {
    const RunOptions& options = request_.options;
    Loader loader(experiment_.batches(), experiment_.schedule(state_.next),
                  {static_cast<int>(options.data.workers), 2 * static_cast<int>(options.data.workers) + 2});
    while (true) {
      if (options.training.max_steps > 0 && state_.step >= options.training.max_steps) return "completed";
      const LoadedBatch* loaded = loader.next();
      if (!loaded) return "completed";
      const Clock::time_point start = Clock::now();
      const StepResult result = train_step(experiment_.learner(), loaded->batch, state_.step);
      ++state_.step;
      state_.samples += result.samples;
      state_.next = loaded->next;
      if (loaded->window_end) ++state_.windows_done;
      last_window_ = loaded->cursor.window;
      log_.step(result, last_window_, ms_since(start), loaded->data_wait_ms, state_);
      if (evaluation_is_due(loaded->window_end) && evaluate(last_window_)) return "target";
      if (options.checkpoint.every_steps > 0 && state_.step % options.checkpoint.every_steps == 0) save();
      if (request_.stop != nullptr && *request_.stop) return "interrupted";
    }
  }

  bool evaluation_is_due(bool window_end) {
    const auto& evaluation = request_.options.evaluation;
    if (evaluation.every_windows > 0)
      return window_end && state_.windows_done % evaluation.every_windows == 0;
    if (evaluation.every_data_fraction <= 0) return false;
    const double epoch =
        static_cast<double>(total_samples_) / static_cast<double>(request_.options.training.epochs);
    const auto due = static_cast<std::int64_t>(
        std::floor(static_cast<double>(state_.samples) / (epoch * evaluation.every_data_fraction)));
    if (due == state_.fraction_evaluations) return false;
    state_.fraction_evaluations = due;
    return true;
  }

  // True when the target is reached.
  bool evaluate(std::int64_t window) {
    result_ = evaluator_.run();
    evaluated_at_ = state_.step;
    log_.evaluation(*result_, state_, window);
    const double target = request_.options.evaluation.target_auc;
    return target > 0 && result_->model.auc && *result_->model.auc >= target;
  }

  void save() {
    save_run(request_.folder.checkpoints(), experiment_, state_);
    saved_at_ = state_.step;
  }

  TrainResult finish(const std::string& reason) {
    TrainResult result{reason, state_.step, state_.samples, 0, result_};
    if (log_.training_seconds() > 0) {
      result.samples_per_s = static_cast<double>(state_.samples - first_sample_) / log_.training_seconds();
    }
    Json summary{{"reason", reason},
                 {"step", state_.step},
                 {"samples", state_.samples},
                 {"samples_per_s", result.samples_per_s},
                 {"training_s", log_.training_seconds()},
                 {"eval", nullptr}};
    if (result_) summary["eval"] = to_json(*result_);
    write_file(request_.folder.summary(), summary.dump(2) + "\n");
    return result;
  }

  const TrainRequest& request_;
  Experiment experiment_;
  RunState state_;
  std::int64_t first_sample_ = state_.samples;
  Evaluator evaluator_;
  std::int64_t total_samples_;
  RunLog log_;
  std::optional<EvaluationResult> result_;
  std::int64_t evaluated_at_ = -1, saved_at_ = -1, last_window_ = 0;
};

}  // namespace

TrainResult train(const TrainRequest& request) {
  return Run(request).run();
}

}  // namespace hstu
