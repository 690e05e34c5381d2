// The results of a training step and of an evaluation, as plain values for logs, checkpoints and programs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hstu/balance/partition.h"
#include "hstu/base/json.h"
#include "hstu/metrics/list_metrics.h"
#include "hstu/metrics/ranking.h"
#include "hstu/model/layer_flops.h"

namespace hstu {

// Time of a step by section: of the device's work on a GPU, between marks on its stream.
struct StageTimes {
  double lookup_ms = 0;                    // of table rows; the copy of the batch
  double forward_ms = 0, backward_ms = 0;  // backward: and the gradients of rows to the host
  double update_ms = 0;                    // sums over ranks, checks, clipping, both optimizers, predictions

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
  std::int64_t samples = 0;          // of the global batch, and so are the next two
  std::int64_t tokens = 0;           // of the sequences: context, history, candidate
  StackFlops flops;                  // zeros: the model does not count them
  DivisionFigures division;          // of the global batch among the ranks, by rank 0; one rank: empty
  std::int64_t memory_peak = 0;      // bytes: the most that the passes' pool has handed out since it was made
  std::optional<StageTimes> stages;  // of a step that was timed
  RankingSamples predictions;        // of the global batch, made before the update; groups are users
};

struct EvaluationResult {
  RankingMetrics model, baseline;
  std::optional<double> auc_binned;  // of the model, over 100,000 bins: constant memory for any run
  double seconds = 0;
  // Ids outside their table in the evaluated samples, by feature; features without such ids are omitted.
  std::map<std::string, std::int64_t> bad_ids;
  std::map<std::string, RankingMetrics> tasks;  // each of the model's tasks; empty if it has only one
  ListMetrics lists;                            // at evaluation.ranking_k; empty if no k is given
};

// {"auc", "ne", ..., "auc_binned", "baseline_auc", "baseline_ne"} and, if there are any, "mrr", "ndcg@10" and
// the like, "bad_ids" and "tasks", as the log and `hstu eval` report them.
Json to_json(const EvaluationResult& result);

// Converts the whole result except its time to the form in checkpoints, and back.
Json evaluation_state(const EvaluationResult& result);
EvaluationResult evaluation_from_state(const Json& state);

}  // namespace hstu
