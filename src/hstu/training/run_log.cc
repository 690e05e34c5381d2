#include "hstu/training/run_log.h"

#include <cmath>

#include "hstu/base/machine.h"
#include "hstu/base/threads.h"

namespace hstu {
namespace {

// Ids outside their tables by feature; features without any are left out.
Json bad_ids(const Experiment& experiment) {
  Json json = Json::object();
  for (const auto& feature : experiment.learner().embeddings.bad_ids().features()) {
    if (feature.count > 0) json[feature.name] = feature.count;
  }
  return json;
}

// Rows that exist by table.
Json table_rows(const Experiment& experiment) {
  Json json = Json::object();
  const TableSet& tables = experiment.learner().embeddings.tables();
  for (std::size_t t = 0; t < tables.size(); ++t) json[tables[t].config().name] = tables[t].rows_alive();
  return json;
}

// What each table may hold.
Json table_limits(const Experiment& experiment) {
  Json json = Json::object();
  const TableSet& tables = experiment.learner().embeddings.tables();
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const auto& config = tables[t].config();
    json[config.name] = {{"rows", config.rows}, {"dim", config.dim}};
  }
  return json;
}

Json describe_run(const Experiment& experiment, const std::string& version, std::int64_t total_samples) {
  const RunOptions& options = experiment.options();
  return {{"event", "run"},
          {"program", "hstu"},
          {"version", version},
          {"config_hash", config_hash(to_toml(options))},
          {"dataset", experiment.dataset().manifest().id},
          {"seed", options.seed},
          {"threads", threads()},
          {"tables", table_limits(experiment)},
          {"dense_parameters", experiment.learner().model.parameters().count()},
          {"train_samples", total_samples},
          {"eval_samples", experiment.anchors().evaluation.size()},
          {"machine", to_json(this_machine())}};
}

}  // namespace

RunLog::RunLog(const Path& path, const Experiment& experiment, const std::string& version, bool resumed,
               std::int64_t total_samples)
    : experiment_(experiment), lines_(path), progress_("train", total_samples, "samples") {
  if (experiment.options().metrics.tensorboard)
    tensorboard_.emplace(path.parent_path(), read_json_lines(path));
  if (!resumed) write(describe_run(experiment, version, total_samples));
}

void RunLog::write(Json line) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  line["time_s"] = std::round(now.count() * 1000) / 1000;
  lines_.write(line);
  if (tensorboard_) tensorboard_->write(line);
}

void RunLog::step(const StepResult& result, std::int64_t window, double step_ms, double wait_ms,
                  RunState& state) {
  step_ms_ += step_ms;
  wait_ms_ += wait_ms;
  stages_ += result.stages;
  training_ms_ += step_ms + wait_ms;
  samples_ += result.samples;
  tokens_ += result.tokens;
  state.loss_sum += result.loss;
  ++state.loss_steps;
  progress_.advance_to(state.samples,
                       fmt::format("window {}, loss {:.4f}{}", window,
                                   state.loss_sum / static_cast<double>(state.loss_steps), last_auc_));
  if (state.step % experiment_.options().metrics.every_steps != 0) return;
  const double seconds = (step_ms_ + wait_ms_) / 1000;
  const auto steps = static_cast<double>(state.loss_steps);
  write({{"event", "train"},
         {"step", state.step},
         {"window", window},
         {"samples", state.samples},
         {"loss", state.loss_sum / steps},
         {"gradient_norm", result.gradient_norm},
         {"lr_dense", result.lr_dense},
         {"lr_sparse", result.lr_sparse},
         {"table_rows", table_rows(experiment_)},
         {"bad_ids", bad_ids(experiment_)},
         {"step_ms", step_ms_ / steps},
         {"data_wait_ms", wait_ms_ / steps},
         {"lookup_ms", stages_.lookup_ms / steps},
         {"forward_ms", stages_.forward_ms / steps},
         {"backward_ms", stages_.backward_ms / steps},
         {"update_ms", stages_.update_ms / steps},
         {"samples_per_s", static_cast<double>(samples_) / seconds},
         {"tokens_per_s", static_cast<double>(tokens_) / seconds}});
  state.loss_sum = 0;
  state.loss_steps = 0;
  step_ms_ = wait_ms_ = 0;
  stages_ = {};
  samples_ = tokens_ = 0;
}

void RunLog::evaluation(const EvaluationResult& result, const RunState& state, std::int64_t window) {
  Json line{{"event", "eval"}, {"step", state.step}, {"window", window}, {"samples", state.samples}};
  line.update(to_json(result));
  line["eval_s"] = result.seconds;
  write(line);
  if (result.model.auc) last_auc_ = fmt::format(", AUC {:.4f}", *result.model.auc);
}

void RunLog::end(const std::string& reason, const RunState& state) {
  progress_.finish(reason);
  write({{"event", "end"},
         {"reason", reason},
         {"step", state.step},
         {"samples", state.samples},
         {"training_s", training_seconds()}});
}

}  // namespace hstu
