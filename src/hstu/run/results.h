// What a training step and an evaluation give: plain values that logs, checkpoints and programs show.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/metrics/ranking.h"

namespace hstu {

// Where the time of a step goes.
struct StageTimes {
  double lookup_ms = 0;  // of table rows
  double forward_ms = 0, backward_ms = 0;
  double update_ms = 0;  // clipping and both optimizers

  StageTimes& operator+=(const StageTimes& other) {
    lookup_ms += other.lookup_ms;
    forward_ms += other.forward_ms;
    backward_ms += other.backward_ms;
    update_ms += other.update_ms;
    return *this;
  }
};

struct StepResult {
  double loss = 0;           // of the global batch: mean cross entropy times model.loss_weight
  double gradient_norm = 0;  // of the dense parameters, before clipping
  double lr_dense = 0, lr_sparse = 0;
  std::int64_t samples = 0;  // of this rank
  std::int64_t tokens = 0;   // of this rank's sequences: context, history, candidate
  StageTimes stages;
  RankingSamples predictions;  // of the global batch, made before the update; groups are users
};

struct EvaluationResult {
  RankingMetrics model, baseline;
  std::optional<double> auc_binned;  // of the model, over 100,000 bins: what a run of any length can keep
  double seconds = 0;
  // Ids outside their table in the samples evaluated, by feature; features without any are left out.
  std::map<std::string, std::int64_t> bad_ids;
};

// {"auc", "ne", ..., "auc_binned", "baseline_auc", "baseline_ne"} and, where there are any, "bad_ids": what
// both the log and `hstu eval` report.
Json to_json(const EvaluationResult& result);

// The whole result but its time, for checkpoints, and back.
Json evaluation_state(const EvaluationResult& result);
EvaluationResult evaluation_from_state(const Json& state);

}  // namespace hstu
