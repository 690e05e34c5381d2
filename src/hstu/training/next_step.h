// The step by the loader's next batch, of the rank that leads a run and of those that follow.
#pragma once

#include <cstdint>

#include "hstu/batching/loader.h"
#include "hstu/comm/communicator.h"
#include "hstu/experiment/experiment.h"
#include "hstu/profile/profile.h"
#include "hstu/step/attention_meter.h"
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

// Begins the step of `context`, whose draws and `compute` it chooses.
BegunStep begin_next(Experiment& experiment, Loader& loader, Profiler& profiler, AttentionMeter& attention,
                     StepContext context);

}  // namespace hstu
