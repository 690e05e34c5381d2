// The state of a run, and how it is saved and loaded. It holds no times and does not depend on interruptions:
// the last checkpoint of a run has the same bytes with and without them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hstu/batching/schedule.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/dataset/dataset.h"
#include "hstu/objective/evaluation_result.h"
#include "hstu/options/options.h"
#include "hstu/run/best_evaluation.h"

namespace hstu {

struct RunState {
  std::int64_t step = 0;     // completed training steps
  std::int64_t samples = 0;  // trained so far
  BatchCursor next;          // the next batch
  // Sums since the last train line of the log.
  double loss_sum = 0;
  std::int64_t loss_steps = 0;
  // The mean of such a line, with the step that is counted next.
  double mean_loss_with(double loss) const { return (loss_sum + loss) / static_cast<double>(loss_steps + 1); }
  std::int64_t windows_done = 0;
  bool window_end = false;  // the last batch was the last of its window
  // The last evaluation, which is compared with the target, and its step.
  std::optional<EvaluationResult> evaluation;
  std::int64_t evaluated_at = -1;
  bool evaluation_due = false;  // at this step; it was interrupted
  BestEvaluation best;          // of the evaluations so far
};

// What a checkpoint records of its run.
struct RunOrigin {
  std::string dataset;               // id
  std::vector<std::string> earlier;  // ids of the datasets that it extended while the run was trained
  std::string manifest;              // of the dataset, as JSON; "": it has segments
  std::string config;                // resolved, as TOML
};

// Writes RUN/checkpoints/step_N with `sections` and the state. `reason` distinguishes two saves of one step.
// `before_rename`, `base`: see save_checkpoint.
Path save_run(const Path& checkpoints, const RunOrigin& origin, RunState state, const std::string& reason,
              std::vector<Section> sections, const std::function<void()>& before_rename = {},
              const std::optional<CheckpointBase>& base = std::nullopt);

// Fills the sections from a checkpoint and returns the state. Throws Error if its sections do not fit.
RunState load_run(const Checkpoint& checkpoint, std::vector<Section> sections);
// The same. Throws UsageError if the dataset neither is that of the checkpoint nor extends it.
RunState load_run(const Checkpoint& checkpoint, const Dataset& dataset, std::vector<Section> sections);

// Throws UsageError if the dataset neither is that of the checkpoint nor extends it.
void check_extends(const Dataset& dataset, const Checkpoint& checkpoint);

// The reason, the id of the dataset and the configuration that save_run wrote.
std::string saved_reason(const Checkpoint& checkpoint);
std::string saved_dataset(const Checkpoint& checkpoint);
std::vector<std::string> saved_earlier_datasets(const Checkpoint& checkpoint);
// The manifest of that dataset; nothing in checkpoints of earlier versions.
std::optional<Manifest> saved_manifest(const Checkpoint& checkpoint);
RunOptions saved_options(const Checkpoint& checkpoint);

// Points the link `best` to the checkpoint of the best evaluation, or removes it where there is none.
void link_best(const Path& checkpoints, const BestEvaluation& best);

// The checkpoint of a step (-1: the newest) in RUN/checkpoints. UsageError listing the existing steps.
Path find_checkpoint(const Path& checkpoints, std::int64_t step);
// The checkpoint that --checkpoint names: a step, "best", or "" for the newest. UsageError for other words.
Path find_checkpoint(const Path& checkpoints, const std::string& word);

}  // namespace hstu
