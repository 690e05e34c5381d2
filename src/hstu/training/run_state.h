// Where a run stands, and its way into checkpoints and back.
#pragma once

#include <cstdint>

#include "hstu/base/json.h"
#include "hstu/batching/schedule.h"
#include "hstu/training/experiment.h"

namespace hstu {

struct RunState {
  std::int64_t step = 0;     // training steps done
  std::int64_t samples = 0;  // trained so far
  BatchCursor next;          // the batch that comes next
  // Sums since the last train line of the log.
  double loss_sum = 0;
  std::int64_t loss_steps = 0;
  // Windows finished, and the samples at which the last evaluation by data fraction was due.
  std::int64_t windows_done = 0;
  std::int64_t fraction_evaluations = 0;
};

// Writes RUN/checkpoints/step_N with everything that going on needs, keeps the newest `keep` of them (0:
// all).
Path save_run(const Path& checkpoints, const Experiment& experiment, const RunState& state);

// Fills the experiment from a checkpoint. Throws Error when it was made from another dataset or model.
RunState load_run(const Path& checkpoint, Experiment& experiment);

// The checkpoint of a step (-1: the newest) below RUN/checkpoints. UsageError listing what there is.
Path find_checkpoint(const Path& checkpoints, std::int64_t step);

}  // namespace hstu
