#include "hstu/run/best_evaluation.h"

namespace hstu {
bool reaches(const MetricSpec& metric, const EvaluationResult& result, double target) {
  const std::optional<double> value = result.find(metric.name);
  return value && (*value == target || metric.improves(*value, target));
}

void BestEvaluation::add(const EvaluationResult& result, MetricSpecs specs, std::int64_t at_step,
                         double min_delta) {
  if (metric.empty()) return;
  const std::optional<double> now = result.find(metric);
  if (!now) return;
  const MetricSpec& spec = known_metric(specs, metric);
  if (!value || spec.improves(*now, *value)) {
    step = at_step;
    value = now;
  }
  const bool progress = !reference || spec.improves(*now, *reference, min_delta);
  stale = progress ? 0 : stale + 1;
  if (progress) reference = now;
}

Json to_json(const BestEvaluation& best) {
  if (best.metric.empty()) return nullptr;
  return {{"metric", best.metric},
          {"step", best.step},
          {"value", best.value},
          {"reference", best.reference},
          {"stale", best.stale}};
}

BestEvaluation best_evaluation_from_json(const Json& json) {
  BestEvaluation best;
  if (json.is_null()) return best;
  json.at("metric").get_to(best.metric);
  json.at("step").get_to(best.step);
  json.at("value").get_to(best.value);
  json.at("reference").get_to(best.reference);
  json.at("stale").get_to(best.stale);
  return best;
}

}  // namespace hstu
