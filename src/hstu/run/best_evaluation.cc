#include "hstu/run/best_evaluation.h"

#include "hstu/metrics/metric_name.h"

namespace hstu {
namespace {

bool improves(const std::string& metric, double value, double on, double by = 0) {
  return larger_is_better(metric) ? value > on + by : value < on - by;
}

}  // namespace

std::optional<double> metric_of(const EvaluationResult& result, const std::string& name) {
  for (const PlainMetric& metric : kPlainMetrics)
    if (name == metric.name) return result.model.*metric.value;
  const auto found = result.lists.find(name);
  return found == result.lists.end() ? std::nullopt : found->second;
}

void BestEvaluation::add(const EvaluationResult& result, std::int64_t at_step, double min_delta) {
  if (metric.empty()) return;
  const std::optional<double> now = metric_of(result, metric);
  if (!now) return;
  if (!value || improves(metric, *now, *value)) {
    step = at_step;
    value = now;
  }
  const bool progress = !reference || improves(metric, *now, *reference, min_delta);
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
