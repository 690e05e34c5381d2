#include "hstu/comparison/sweep_summary.h"

#include <algorithm>

#include "hstu/base/text.h"

namespace hstu {
namespace {

using Setting = std::vector<std::pair<std::string, std::string>>;

struct SettingResults {
  Setting setting;
  std::vector<const SweepResult*> runs;

  // Of the runs that ended and have the value.
  template <typename ValueOf>
  std::optional<Spread> spread(const ValueOf& value_of) const {
    std::vector<double> values;
    for (const SweepResult* result : runs) {
      const std::optional<double> value = value_of(result->outcome);
      if (result->outcome.ended() && value) values.push_back(*value);
    }
    return spread_of(std::move(values));
  }
  std::optional<Spread> spread(const MetricSpec& metric) const {
    return spread([&](const RunOutcome& outcome) { return outcome.metrics.find(metric.name); });
  }
  std::optional<Spread> best() const {
    return spread([](const RunOutcome& outcome) { return outcome.best; });
  }
  std::optional<Spread> speed() const {
    return spread([](const RunOutcome& outcome) { return outcome.samples_per_s; });
  }
  MetricSpecs metrics() const { return runs.front()->run.options.model.metrics(); }
  std::int64_t ended() const {
    return std::count_if(runs.begin(), runs.end(),
                         [](const auto* result) { return result->outcome.ended(); });
  }
  std::string best_metric() const {
    const std::string& best = runs.front()->run.options.checkpoint.best;
    return best.empty() ? std::string(metrics().front().name) : best;
  }
};

std::vector<SettingResults> by_setting(std::span<const SweepResult> results) {
  std::vector<SettingResults> settings;
  for (const SweepResult& result : results) {
    if (settings.empty() || settings.back().setting != result.run.setting)
      settings.push_back({result.run.setting, {}});
    settings.back().runs.push_back(&result);
  }
  return settings;
}

std::string median_cell(const std::optional<Spread>& spread) {
  return spread ? fmt::format("{:.4f}", spread->median) : "-";
}

std::string range_cell(const std::optional<Spread>& spread) {
  return spread ? fmt::format("{:.4f} to {:.4f}", spread->least, spread->most) : "-";
}

Json to_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  return {{"median", spread->median}, {"min", spread->least}, {"max", spread->most}};
}

}  // namespace

std::optional<Spread> spread_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return Spread{(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
}

std::vector<Cells> sweep_table(std::span<const SweepResult> results) {
  const std::vector<SettingResults> settings = by_setting(results);
  Cells head;
  head.reserve(settings.front().setting.size());
  for (const auto& [key, value] : settings.front().setting) head.push_back(key);
  if (head.empty()) head.emplace_back("setting");
  const std::string best = "best " + settings.front().best_metric();
  std::vector<MetricSpecs> of_settings;
  of_settings.reserve(settings.size());
  for (const SettingResults& setting : settings) of_settings.push_back(setting.metrics());
  const std::vector<MetricSpec> metrics = metrics_in_tables(of_settings);
  head.emplace_back("runs");
  for (const MetricSpec& metric : metrics) {
    head.emplace_back(metric.title);
    if (metric.name == metrics.front().name) head.emplace_back("range");
  }
  head.insert(head.end(), {best, "range", "samples/s"});
  std::vector<Cells> table{head};
  for (const SettingResults& setting : settings) {
    Cells row;
    row.reserve(setting.setting.size());
    for (const auto& [key, value] : setting.setting) row.push_back(value);
    if (row.empty()) row.emplace_back("the configuration");
    row.push_back(fmt::format("{} of {}", setting.ended(), setting.runs.size()));
    for (const MetricSpec& metric : metrics) {
      const std::optional<Spread> spread = setting.spread(metric);
      row.push_back(median_cell(spread));
      if (metric.name == metrics.front().name) row.push_back(range_cell(spread));
    }
    const std::optional<Spread> best_of_runs = setting.best(), speed = setting.speed();
    row.insert(row.end(), {median_cell(best_of_runs), range_cell(best_of_runs),
                           speed ? fmt::format("{:.0f}", speed->median) : "-"});
    table.push_back(std::move(row));
  }
  return table;
}

std::string sweep_lines(std::span<const SweepResult> results) {
  std::string text;
  for (const SettingResults& setting : by_setting(results)) {
    Json line{{"setting", Json::object()}, {"best_metric", setting.best_metric()}};
    for (const auto& [key, value] : setting.setting) line["setting"][key] = value;
    for (const MetricSpec& metric : setting.metrics())
      if (metric.is_plain()) line[std::string(metric.name)] = to_json(setting.spread(metric));
    line["best"] = to_json(setting.best());
    line["samples_per_s"] = to_json(setting.speed());
    line["runs"] = Json::array();
    for (const SweepResult* result : setting.runs) {
      Json run{{"run", result->run.name}, {"seed", result->run.seed}};
      run.update(hstu::to_json(result->outcome));
      run["state"] = result->state;
      line["runs"].push_back(std::move(run));
    }
    text += line.dump() + "\n";
  }
  return text;
}

}  // namespace hstu
