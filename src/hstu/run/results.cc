#include "hstu/run/results.h"

namespace hstu {
namespace {

void add_parts(const EvaluationResult& result, Json& json) {
  if (!result.bad_ids.empty()) json["bad_ids"] = result.bad_ids;
  for (const auto& [task, metrics] : result.tasks) json["tasks"][task] = to_json(metrics);
}

}  // namespace

Json to_json(const EvaluationResult& result) {
  Json json = to_json(result.model);
  json["auc_binned"] = result.auc_binned;
  json["baseline_auc"] = result.baseline.auc;
  json["baseline_ne"] = result.baseline.ne;
  for (const auto& [name, value] : result.lists) json[name] = value;
  add_parts(result, json);
  return json;
}

Json evaluation_state(const EvaluationResult& result) {
  Json state{{"model", to_json(result.model)},
             {"baseline", to_json(result.baseline)},
             {"auc_binned", result.auc_binned}};
  for (const auto& [name, value] : result.lists) state["lists"][name] = value;
  add_parts(result, state);
  return state;
}

EvaluationResult evaluation_from_state(const Json& state) {
  EvaluationResult result{ranking_metrics_from_json(state.at("model")),
                          ranking_metrics_from_json(state.at("baseline")),
                          state.at("auc_binned").get<std::optional<double>>(),
                          0,
                          state.value("bad_ids", std::map<std::string, std::int64_t>()),
                          {},
                          {}};
  if (state.contains("lists")) {
    for (const auto& [name, value] : state.at("lists").items())
      result.lists[name] = value.get<std::optional<double>>();
  }
  if (state.contains("tasks")) {
    for (const auto& [task, metrics] : state.at("tasks").items())
      result.tasks[task] = ranking_metrics_from_json(metrics);
  }
  return result;
}

}  // namespace hstu
