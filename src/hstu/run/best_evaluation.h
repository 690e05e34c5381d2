// The best evaluation of a run by one metric, and the evaluations since it improved: what checkpoint.best and
// evaluation.patience look at. docs/runs.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hstu/base/json.h"
#include "hstu/metrics/metric_spec.h"
#include "hstu/objective/evaluation_result.h"

namespace hstu {

// Whether the value of the evaluation is at least as good as `target`.
bool reaches(const MetricSpec& metric, const EvaluationResult& result, double target);

struct BestEvaluation {
  std::string metric;           // "": none is compared, and the rest keeps its value
  std::int64_t step = -1;       // of the best evaluation, of equal ones the first; -1: none so far
  std::optional<double> value;  // of the metric, at that step
  // For patience: the latest value that improved on its predecessor by more than min_delta, and the
  // evaluations since then.
  std::optional<double> reference;
  std::int64_t stale = 0;

  // An evaluation that does not define the metric changes nothing. `specs`: of the kind of model.
  void add(const EvaluationResult& result, MetricSpecs specs, std::int64_t at_step, double min_delta);

  bool operator==(const BestEvaluation&) const = default;
};

// {"metric", "step", "value", "reference", "stale"}, exact in every bit; null without a metric.
Json to_json(const BestEvaluation& best);
BestEvaluation best_evaluation_from_json(const Json& json);

}  // namespace hstu
