#include "hstu/run/results.h"

namespace hstu {

Json to_json(const EvaluationResult& result) {
  Json json = to_json(result.model);
  json["auc_binned"] = result.auc_binned;
  json["baseline_auc"] = result.baseline.auc;
  json["baseline_ne"] = result.baseline.ne;
  if (!result.bad_ids.empty()) json["bad_ids"] = result.bad_ids;
  return json;
}

Json evaluation_state(const EvaluationResult& result) {
  Json state{{"model", to_json(result.model)},
             {"baseline", to_json(result.baseline)},
             {"auc_binned", result.auc_binned}};
  if (!result.bad_ids.empty()) state["bad_ids"] = result.bad_ids;
  return state;
}

EvaluationResult evaluation_from_state(const Json& state) {
  return {ranking_metrics_from_json(state.at("model")), ranking_metrics_from_json(state.at("baseline")),
          state.at("auc_binned").get<std::optional<double>>(), 0,
          state.value("bad_ids", std::map<std::string, std::int64_t>())};
}

}  // namespace hstu
