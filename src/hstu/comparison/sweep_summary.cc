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
  std::optional<Spread> spread(std::optional<double> RunOutcome::*value) const {
    std::vector<double> values;
    for (const SweepResult* result : runs) {
      if (result->outcome.ended() && result->outcome.*value) values.push_back(*(result->outcome.*value));
    }
    return spread_of(std::move(values));
  }
  std::int64_t ended() const {
    return std::count_if(runs.begin(), runs.end(),
                         [](const auto* result) { return result->outcome.ended(); });
  }
  std::string best_metric() const {
    return runs.front()->run.options.checkpoint.best.empty() ? "auc"
                                                             : runs.front()->run.options.checkpoint.best;
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
  head.insert(head.end(), {"runs", "AUC", "range", "NE", best, "range", "samples/s"});
  std::vector<Cells> table{head};
  for (const SettingResults& setting : settings) {
    Cells row;
    row.reserve(setting.setting.size());
    for (const auto& [key, value] : setting.setting) row.push_back(value);
    if (row.empty()) row.emplace_back("the configuration");
    const auto auc = setting.spread(&RunOutcome::auc), least = setting.spread(&RunOutcome::best);
    const auto speed = setting.spread(&RunOutcome::samples_per_s);
    row.insert(row.end(), {fmt::format("{} of {}", setting.ended(), setting.runs.size()), median_cell(auc),
                           range_cell(auc), median_cell(setting.spread(&RunOutcome::ne)), median_cell(least),
                           range_cell(least), speed ? fmt::format("{:.0f}", speed->median) : "-"});
    table.push_back(std::move(row));
  }
  return table;
}

std::string sweep_lines(std::span<const SweepResult> results) {
  std::string text;
  for (const SettingResults& setting : by_setting(results)) {
    Json line{{"setting", Json::object()}, {"best_metric", setting.best_metric()}};
    for (const auto& [key, value] : setting.setting) line["setting"][key] = value;
    line["auc"] = to_json(setting.spread(&RunOutcome::auc));
    line["ne"] = to_json(setting.spread(&RunOutcome::ne));
    line["log_loss"] = to_json(setting.spread(&RunOutcome::log_loss));
    line["gauc"] = to_json(setting.spread(&RunOutcome::gauc));
    line["best"] = to_json(setting.spread(&RunOutcome::best));
    line["samples_per_s"] = to_json(setting.spread(&RunOutcome::samples_per_s));
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
