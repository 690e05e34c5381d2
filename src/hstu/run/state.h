// Where a run stands, and its way into checkpoints and back. Nothing here tells time, and nothing depends on
// how often the run was interrupted: the last checkpoint of a run has the same bytes either way.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hstu/batching/schedule.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/dataset/dataset.h"
#include "hstu/run/options.h"
#include "hstu/run/results.h"

namespace hstu {

struct RunState {
  std::int64_t step = 0;     // training steps done
  std::int64_t samples = 0;  // trained so far
  BatchCursor next;          // the batch that comes next
  // Sums since the last train line of the log.
  double loss_sum = 0;
  std::int64_t loss_steps = 0;
  std::int64_t windows_done = 0;
  bool window_end = false;  // the last batch was the last of its window
  // The last evaluation, and the step it was made at: what the target is compared with.
  std::optional<EvaluationResult> evaluation;
  std::int64_t evaluated_at = -1;
  bool evaluation_due = false;  // at this step, but the run was interrupted in it
};

// What a checkpoint says of the run that made it.
struct RunOrigin {
  std::string dataset;  // id
  std::string config;   // resolved, as TOML
};

// Writes RUN/checkpoints/step_N with `sections` and the state. `reason` is why: it distinguishes two saves of
// one step. `before_rename` as for save_checkpoint.
Path save_run(const Path& checkpoints, const RunOrigin& origin, RunState state, const std::string& reason,
              std::vector<Section> sections, const std::function<void()>& before_rename = {});

// Fills the sections from a checkpoint and gives the state. Throws Error when it was made from another
// dataset or its sections do not fit.
RunState load_run(const Checkpoint& checkpoint, const Dataset& dataset, std::vector<Section> sections);

// What save_run wrote beside the state.
std::string saved_reason(const Checkpoint& checkpoint);
RunOptions saved_options(const Checkpoint& checkpoint);

// The checkpoint of a step (-1: the newest) below RUN/checkpoints. UsageError listing what there is.
Path find_checkpoint(const Path& checkpoints, std::int64_t step);

}  // namespace hstu
