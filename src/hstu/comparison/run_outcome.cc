#include "hstu/comparison/run_outcome.h"

#include <algorithm>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/json_lines.h"
#include "hstu/base/text.h"
#include "hstu/comparison/evaluated_samples.h"
#include "hstu/options/options.h"

namespace hstu {
namespace {

std::optional<double> number(const Json& line, const std::string& key) {
  const auto found = line.find(key);
  return found == line.end() || !found->is_number() ? std::nullopt : std::optional(found->get<double>());
}

void add_best(const RunMetrics& metrics, MetricSpecs specs, RunOutcome& outcome) {
  const MetricSpec* const metric = find_metric(specs, outcome.best_metric);
  if (metric == nullptr) return;
  for (const Json* line : metrics.comparable_evaluations()) {
    const std::optional<double> value = number(*line, outcome.best_metric);
    if (!value) continue;
    if (outcome.best && !metric->improves(*value, *outcome.best)) continue;
    outcome.best = value;
    outcome.best_step = line->value("step", std::int64_t{0});
  }
}

// The samples that were trained before the log began: an earlier log may have been moved away. Every other
// resume is behind the line of its checkpoint.
double samples_before(const RunMetrics& metrics) {
  const std::vector<const Json*> resumes = metrics.all("resume"), saves = metrics.all("checkpoint");
  if (resumes.empty()) return 0;
  const auto step_of = [](const Json* line) { return line->value("step", std::int64_t{0}); };
  const bool is_known = !saves.empty() && step_of(saves.front()) <= step_of(resumes.front());
  return is_known ? 0 : resumes.front()->value("samples", 0.0);
}

RunOutcome read_outcome(const RunMetrics& metrics, MetricSpecs specs) {
  RunOutcome outcome;
  outcome.best_metric = specs.front().name;
  // A resume removes the line of an earlier end.
  const Json* latest = metrics.last("end");
  if (latest != nullptr) {
    outcome.state = latest->value("reason", "");
    const double seconds = latest->value("training_s", 0.0);
    if (seconds > 0)
      outcome.samples_per_s = (latest->value("samples", 0.0) - samples_before(metrics)) / seconds;
  } else if ((latest = metrics.last("train")) != nullptr) {
    outcome.samples_per_s = number(*latest, "samples_per_s");
  }
  if (latest != nullptr) {
    outcome.step = latest->value("step", std::int64_t{0});
    outcome.samples = latest->value("samples", std::int64_t{0});
  }
  if (const Json* const eval = metrics.last("eval")) {
    for (const MetricSpec& spec : specs)
      if (spec.is_plain()) outcome.metrics.add(std::string(spec.name), number(*eval, std::string(spec.name)));
    if (eval->contains("best")) outcome.best_metric = eval->at("best").value("metric", outcome.best_metric);
  }
  add_best(metrics, specs, outcome);
  return outcome;
}

// The keys that have different values, in the order of the configuration.
std::vector<std::string> differing_keys(std::span<const ComparedRun> runs) {
  std::vector<std::string> keys;
  for (const ComparedRun& run : runs.subspan(1)) {
    for (const ConfigDifference& difference : differences(runs.front().config, run.config)) {
      if (!contains(keys, difference.key)) keys.push_back(difference.key);
    }
  }
  return keys;
}

// "": the run has no such key.
std::string value_of(const ConfigFlattener::Values& config, const std::string& key) {
  const auto found =
      std::find_if(config.begin(), config.end(), [&](const auto& e) { return e.first == key; });
  return found == config.end() ? "" : found->second;
}

// The same; a section [tables.NAME] that a run does not have is one of defaults.
std::string value_or_default(const ConfigFlattener::Values& config, const std::string& key) {
  std::string value = value_of(config, key);
  if (!value.empty() || !key.starts_with("tables.")) return value;
  RunOptions defaults;
  defaults.tables.by_name[split(key, '.')[1]] = {};
  return value_of(config_values(defaults), key);
}

// The dataset of the last evaluations: a resume may have extended it.
std::string dataset_of(const RunMetrics& metrics) {
  std::string dataset = metrics.run().value("dataset", "");
  for (const Json* line : metrics.all("resume"))
    if (line->contains("data")) dataset = line->at("data").value("to", dataset);
  return dataset;
}

}  // namespace

std::string metric_cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.4f}", *value) : "-";
}

RunOutcome outcome_of(const RunMetrics& metrics, MetricSpecs specs) {
  return metrics.values([&] { return read_outcome(metrics, specs); });
}

Json to_json(const RunOutcome& outcome) {
  Json json{{"state", outcome.state}, {"step", outcome.step}, {"samples", outcome.samples}};
  json.update(to_json(outcome.metrics));
  json.update(Json{{"best_metric", outcome.best_metric},
                   {"best", outcome.best},
                   {"best_step", outcome.best_step},
                   {"samples_per_s", outcome.samples_per_s}});
  return json;
}

std::vector<MetricSpec> metrics_in_tables(std::span<const MetricSpecs> kinds) {
  std::vector<MetricSpec> all = metrics_of_all(kinds);
  std::erase_if(all, [](const MetricSpec& metric) { return !metric.in_tables; });
  return all;
}

ComparedRun read_run(const Path& path, const std::string& name) {
  const RunFolder folder = open_run_folder(path);
  if (!std::filesystem::exists(folder.metrics()))
    fail_usage("{} has no metrics.jsonl yet: the run has not started", path.string());
  RunMetrics metrics(read_json_lines(folder.metrics()), folder.metrics().string());
  const RunOptions options = read_run_options(folder);
  const MetricSpecs specs = options.model.metrics();
  RunOutcome outcome = outcome_of(metrics, specs);
  ConfigFlattener::Values samples =
      evaluated_samples(options, metrics.values([&] { return dataset_of(metrics); }));
  std::string text;
  for (const auto& [key, value] : samples) text += fmt::format("{} = {}\n", key, value);
  return {{name, std::move(metrics), specs, std::move(text)},
          config_values(options),
          std::move(outcome),
          std::move(samples)};
}

std::vector<Cells> comparison_table(std::span<const ComparedRun> runs) {
  std::vector<MetricSpecs> of_runs;
  for (const ComparedRun& run : runs) of_runs.push_back(run.run.specs);
  const std::vector<MetricSpec> metrics = metrics_in_tables(of_runs);
  Cells head{"run"};
  for (const MetricSpec& metric : metrics) head.emplace_back(metric.title);
  head.insert(head.end(), {"best", "at step", "steps", "state", "samples/s"});
  std::vector<Cells> table{head};
  for (const ComparedRun& run : runs) {
    const RunOutcome& o = run.outcome;
    Cells row{run.run.name};
    for (const MetricSpec& metric : metrics) row.push_back(metric_cell(o.metrics.find(metric.name)));
    row.insert(row.end(), {o.best ? fmt::format("{} {:.4f}", o.best_metric, *o.best) : "-",
                           o.best ? with_separators(o.best_step) : "-", with_separators(o.step), o.state,
                           o.samples_per_s ? fmt::format("{:.0f}", *o.samples_per_s) : "-"});
    table.push_back(std::move(row));
  }
  return table;
}

std::vector<Cells> settings_table(std::span<const ComparedRun> runs, std::vector<std::string>* of_kinds) {
  Cells head{"key"};
  for (const ComparedRun& run : runs) head.push_back(run.run.name);
  std::vector<Cells> table{head};
  for (const std::string& key : differing_keys(runs)) {
    Cells row{key};
    for (const ComparedRun& run : runs) row.push_back(value_or_default(run.config, key));
    if (std::all_of(row.begin() + 1, row.end(), [&](const std::string& value) { return value == row[1]; }))
      continue;
    const bool everywhere = !contains(row, std::string());
    // An element of a list that only some runs have is a difference; a key of [model] is of another kind.
    if (!everywhere && key.starts_with("model.")) {
      if (of_kinds != nullptr) of_kinds->push_back(key);
      continue;
    }
    std::replace(row.begin(), row.end(), std::string(), std::string("-"));
    table.push_back(std::move(row));
  }
  return table;
}

std::string note_on_keys(const std::vector<std::string>& of_kinds) {
  if (of_kinds.empty()) return "";
  return fmt::format("{} keys of [model] are left out: only some of these kinds of models have them",
                     of_kinds.size());
}

}  // namespace hstu
