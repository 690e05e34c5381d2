// The training loop: batches in order, steps, evaluations, checkpoints and the log. docs/runs.md
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hstu/comm/communicator.h"
#include "hstu/options/options.h"
#include "hstu/profile/profile.h"
#include "hstu/run/best_evaluation.h"
#include "hstu/run/folder.h"
#include "hstu/run/step_result.h"

namespace hstu {

struct TrainRequest {
  RunOptions options;
  RunFolder folder;
  std::string version;                      // of the program, for the log
  const std::atomic<bool>* stop = nullptr;  // set by a signal: finish the step, save, end

  bool resume = false;          // continue the folder's run
  std::int64_t from_step = -1;  // from this checkpoint; -1: the newest. Later ones are moved away
  std::vector<std::string> allowed_changes = {};  // keys of the configuration that may differ from the run's

  int ranks_here = 1;                       // that share the memory of this machine
  std::vector<ProfileSteps> profiles = {};  // writes a trace of each of them to the folder
};

struct TrainResult {
  std::string reason;  // "completed", "target", "patience" or "interrupted"
  std::int64_t steps = 0, samples = 0;
  double samples_per_s = 0;                         // of training alone
  std::optional<EvaluationResult> evaluation = {};  // the last one
  MetricSpecs metrics = {};                         // of its kind of model
  BestEvaluation best = {};                         // by checkpoint.best
  std::string warning = {};                         // about ids outside their tables; "": there were none
};

// Trains to the end, the target, the end of patience or the signal. Leaves metrics.jsonl, checkpoints/ and
// summary.json in the folder. A save that fails is reported and training continues; Error if the last one
// fails. Error naming the newest good checkpoint if a number is NaN or infinite: such a number is never
// saved. A new run that fails before its first step is complete leaves no folder. UsageError, with nothing
// changed, if another process trains this run or the configuration differs from the run's. `comm`: a group
// whose other ranks call follow() and share every batch; this is rank 0.
TrainResult train(const TrainRequest& request, Communicator& comm = one_rank());

// A rank other than 0: computes its part of every step and evaluation that train() on rank 0 announces, and
// writes nothing. `request` is that of rank 0, made from the same arguments.
void follow(const TrainRequest& request, Communicator& comm);

}  // namespace hstu
