#include "hstu/comparison/run_outcome.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/json_lines.h"
#include "hstu/base/text.h"
#include "hstu/metrics/metric_name.h"

namespace hstu {
namespace {

std::optional<double> number(const Json& line, const std::string& key) {
  const auto found = line.find(key);
  return found == line.end() || !found->is_number() ? std::nullopt : std::optional(found->get<double>());
}

void add_best(const RunMetrics& metrics, RunOutcome& outcome) {
  for (const Json* line : metrics.all("eval")) {
    const std::optional<double> value = number(*line, outcome.best_metric);
    if (!value) continue;
    const bool better = !outcome.best || (larger_is_better(outcome.best_metric) ? *value > *outcome.best
                                                                                : *value < *outcome.best);
    if (!better) continue;
    outcome.best = value;
    outcome.best_step = line->value("step", std::int64_t{0});
  }
}

RunOutcome read_outcome(const RunMetrics& metrics) {
  RunOutcome outcome;
  // A resume removes the line of an earlier end.
  const Json* latest = metrics.last("end");
  if (latest != nullptr) {
    outcome.state = latest->value("reason", "");
    const double seconds = latest->value("training_s", 0.0);
    if (seconds > 0) outcome.samples_per_s = latest->value("samples", 0.0) / seconds;
  } else if ((latest = metrics.last("train")) != nullptr) {
    outcome.samples_per_s = number(*latest, "samples_per_s");
  }
  if (latest != nullptr) {
    outcome.step = latest->value("step", std::int64_t{0});
    outcome.samples = latest->value("samples", std::int64_t{0});
  }
  if (const Json* const eval = metrics.last("eval")) {
    outcome.auc = number(*eval, "auc");
    outcome.ne = number(*eval, "ne");
    outcome.log_loss = number(*eval, "log_loss");
    outcome.gauc = number(*eval, "gauc");
    if (eval->contains("best")) outcome.best_metric = eval->at("best").value("metric", "auc");
  }
  add_best(metrics, outcome);
  return outcome;
}

// The keys that have different values, in the order of the configuration.
std::vector<std::string> differing_keys(std::span<const ComparedRun> runs) {
  std::vector<std::string> keys;
  for (const ComparedRun& run : runs.subspan(1)) {
    for (const ConfigDifference& difference : differences(runs.front().config, run.config)) {
      if (std::find(keys.begin(), keys.end(), difference.key) == keys.end()) keys.push_back(difference.key);
    }
  }
  return keys;
}

std::string value_of(const ConfigFlattener::Values& config, const std::string& key) {
  const auto found =
      std::find_if(config.begin(), config.end(), [&](const auto& e) { return e.first == key; });
  return found == config.end() ? "-" : found->second;
}

}  // namespace

std::string metric_cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.4f}", *value) : "-";
}

RunOutcome outcome_of(const RunMetrics& metrics) {
  return metrics.values([&] { return read_outcome(metrics); });
}

Json to_json(const RunOutcome& outcome) {
  return {{"state", outcome.state},
          {"step", outcome.step},
          {"samples", outcome.samples},
          {"auc", outcome.auc},
          {"ne", outcome.ne},
          {"log_loss", outcome.log_loss},
          {"gauc", outcome.gauc},
          {"best_metric", outcome.best_metric},
          {"best", outcome.best},
          {"best_step", outcome.best_step},
          {"samples_per_s", outcome.samples_per_s}};
}

ComparedRun read_run(const Path& path, const std::string& name) {
  const RunFolder folder = open_run_folder(path);
  if (!std::filesystem::exists(folder.metrics()))
    fail_usage("{} has no metrics.jsonl yet: the run has not started", path.string());
  RunMetrics metrics(read_json_lines(folder.metrics()), folder.metrics().string());
  RunOutcome outcome = outcome_of(metrics);
  return {{name, std::move(metrics)}, config_values(read_run_options(folder)), std::move(outcome)};
}

std::vector<Cells> comparison_table(std::span<const ComparedRun> runs) {
  const std::vector<std::string> keys = differing_keys(runs);
  Cells head{"run"};
  head.insert(head.end(), keys.begin(), keys.end());
  for (const char* name : {"state", "steps", "AUC", "NE", "GAUC", "best", "at step", "samples/s"})
    head.emplace_back(name);
  std::vector<Cells> table{head};
  for (const ComparedRun& run : runs) {
    const RunOutcome& o = run.outcome;
    Cells row{run.run.name};
    for (const std::string& key : keys) row.push_back(value_of(run.config, key));
    row.insert(row.end(),
               {o.state, with_separators(o.step), metric_cell(o.auc), metric_cell(o.ne), metric_cell(o.gauc),
                o.best ? fmt::format("{} {:.4f}", o.best_metric, *o.best) : "-",
                o.best ? with_separators(o.best_step) : "-",
                o.samples_per_s ? fmt::format("{:.0f}", *o.samples_per_s) : "-"});
    table.push_back(std::move(row));
  }
  return table;
}

}  // namespace hstu
