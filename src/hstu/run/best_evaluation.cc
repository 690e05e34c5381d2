#include "hstu/run/best_evaluation.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

struct PlainMetric {
  const char* name;
  std::optional<double> RankingMetrics::*value;
};
constexpr PlainMetric kPlainMetrics[] = {{"auc", &RankingMetrics::auc},
                                         {"gauc", &RankingMetrics::gauc},
                                         {"gauc_mean", &RankingMetrics::gauc_mean},
                                         {"accuracy", &RankingMetrics::accuracy},
                                         {"ne", &RankingMetrics::ne},
                                         {"log_loss", &RankingMetrics::log_loss}};

bool improves(const std::string& metric, double value, double on, double by = 0) {
  return larger_is_better(metric) ? value > on + by : value < on - by;
}

}  // namespace

void check_metric(const std::string& name) {
  if (name.empty() || name == "mrr" || cutoff_of(name)) return;
  std::vector<std::string> known{"mrr", "ndcg@10", "recall@10"};
  for (const PlainMetric& metric : kPlainMetrics) known.emplace_back(metric.name);
  if (std::find(known.begin(), known.end(), name) == known.end())
    fail_usage("unknown metric \"{}\"{}", name, suggestion(name, known));
}

std::optional<std::int64_t> cutoff_of(const std::string& name) {
  for (const std::string_view prefix : {"ndcg@", "recall@"}) {
    if (!name.starts_with(prefix)) continue;
    const auto k = parse_number<std::int64_t>(std::string_view(name).substr(prefix.size()));
    if (k && *k >= 1) return k;
  }
  return std::nullopt;
}

bool larger_is_better(const std::string& name) {
  return name != "ne" && name != "log_loss";
}

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
