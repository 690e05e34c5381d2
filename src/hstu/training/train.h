// The loop of a run: batches in order, steps, evaluations, checkpoints, and a log of it all.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "hstu/training/evaluation.h"
#include "hstu/training/options.h"
#include "hstu/training/run_folder.h"

namespace hstu {

struct TrainRequest {
  RunOptions options;
  RunFolder folder;
  bool resume = false;                      // go on from the newest checkpoint of the folder
  std::string version;                      // of the program, for the log
  const std::atomic<bool>* stop = nullptr;  // set by a signal: finish the step, save, end
};

struct TrainResult {
  std::string reason;  // "completed", "target" or "interrupted"
  std::int64_t steps = 0, samples = 0;
  double samples_per_s = 0;                    // of training alone
  std::optional<EvaluationResult> evaluation;  // the last one
};

// Trains to the end, the target or the signal. Leaves metrics.jsonl, checkpoints/ and summary.json in the
// folder.
TrainResult train(const TrainRequest& request);

}  // namespace hstu
