// The step by the loader's next batch, of the rank that leads a run and of those that follow.
#pragma once

#include <cstdint>
#include <functional>

#include "hstu/batching/loader.h"
#include "hstu/comm/communicator.h"
#include "hstu/experiment/experiment.h"
#include "hstu/profile/profile.h"
#include "hstu/step/step.h"

namespace hstu {

// A step, and what its batch says of the data.
struct BegunStep {
  Step step;
  BatchCursor next;  // the batch after it
  bool window_end = false;
  DivisionFigures division;
  double wait_ms = 0;  // for the batch
};

// Begins step `step` (0 is the first). `on_predictions`: see StepContext.
BegunStep begin_next(Experiment& experiment, Loader& loader, Profiler& profiler, std::int64_t step,
                     Communicator& comm, ProgressWatch& watch,
                     std::function<void(const Tally&)> on_predictions = {});

}  // namespace hstu
