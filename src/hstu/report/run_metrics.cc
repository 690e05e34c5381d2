#include "hstu/report/run_metrics.h"

#include <algorithm>
#include <cstdint>

#include "hstu/base/error.h"
#include "hstu/base/json_text.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

// The value under "outer.inner", or nullptr.
const Json* find(const Json& line, const std::string& key) {
  const Json* value = &line;
  for (const std::string& part : split(key, '.')) {
    if (!value->is_object() || !value->contains(part)) return nullptr;
    value = &(*value)[part];
  }
  return value;
}

template <typename XOf>
Series curve_over(const std::vector<const Json*>& lines, const std::string& key, const std::string& name,
                  const XOf& x_of) {
  Series series{.name = name, .x = {}, .y = {}};
  for (const Json* line : lines) {
    const Json* value = find(*line, key);
    if (value == nullptr || !value->is_number()) continue;
    series.x.push_back(x_of(*line));
    series.y.push_back(value->get<double>());
  }
  return series;
}

}  // namespace

RunMetrics::RunMetrics(std::vector<Json> lines, const std::string& file)
    : file_(file), lines_(std::move(lines)) {
  for (const Json& line : lines_) {
    check(line.is_object() && line.contains("event") && line["event"].is_string(),
          "{}: expected lines with an \"event\", found {}", file, line.dump());
    if (line["event"] == "run") run_ = line;
  }
}

void RunMetrics::refuse(const nlohmann::json::exception& error) const {
  fail("{}: a line was altered: {}", file_, json_problem(error));
}

std::vector<const Json*> RunMetrics::all(std::string_view event) const {
  std::vector<const Json*> found;
  for (const Json& line : lines_) {
    if (line["event"] == event) found.push_back(&line);
  }
  return found;
}

const Json* RunMetrics::last(std::string_view event) const {
  const auto found = all(event);
  return found.empty() ? nullptr : found.back();
}

std::vector<const Json*> RunMetrics::comparable_evaluations() const {
  std::vector<const Json*> found;
  bool of_others = false;
  for (const Json& line : lines_) {
    if (line["event"] == "resume" && (line.contains("evaluations") || line.contains("data")))
      of_others = true;
    if (line["event"] != "eval") continue;
    if (std::exchange(of_others, false) || line.contains("next_window")) found.clear();
    found.push_back(&line);
  }
  return found;
}

Series RunMetrics::curve(std::string_view event, const std::string& key, const std::string& name) const {
  return curve_over(all(event), key, name, [](const Json& line) { return line.value("samples", 0.0); });
}

Series RunMetrics::curve_in_time(std::string_view event, const std::string& key,
                                 const std::string& name) const {
  const double start = run_.value("time_s", 0.0);
  return curve_over(all(event), key, name,
                    [&](const Json& line) { return (line.value("time_s", start) - start) / 60; });
}

std::vector<std::pair<std::string, double>> RunMetrics::step_ms() const {
  constexpr std::pair<const char*, const char*> kStages[] = {{"data wait", "data_wait_ms"},
                                                             {"row lookup", "lookup_ms"},
                                                             {"forward", "forward_ms"},
                                                             {"backward", "backward_ms"},
                                                             {"update", "update_ms"}};
  const auto lines = all("train");
  const double steps = lines.empty() ? 0 : lines.back()->value("step", 0.0);
  std::vector<std::pair<std::string, double>> stages;
  if (steps <= 0) return stages;
  for (const auto& [name, key] : kStages) {
    double ms = 0, before = 0;
    for (const Json* line : lines) {
      const double step = line->value("step", 0.0);
      ms += (step - before) * line->value(key, 0.0);
      before = step;
    }
    stages.emplace_back(name, ms / steps);
  }
  return stages;
}

std::vector<std::pair<std::string, double>> RunMetrics::stage_seconds() const {
  std::vector<std::pair<std::string, double>> stages = step_ms();
  const Json* const latest = last("train");
  const double steps = latest == nullptr ? 0 : latest->value("step", 0.0);
  for (auto& stage : stages) stage.second *= steps / 1000;
  const auto total = [&](std::string_view event, const char* key) {
    double sum = 0;
    for (const Json* line : all(event)) sum += line->value(key, 0.0);
    return sum;
  };
  stages.emplace_back("evaluation", total("eval", "eval_s"));
  stages.emplace_back("saving", total("checkpoint", "save_s"));
  std::erase_if(stages, [](const auto& stage) { return stage.second <= 0; });
  std::stable_sort(stages.begin(), stages.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return stages;
}

}  // namespace hstu
