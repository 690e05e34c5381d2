// What learns, as sections of checkpoints and as facts and counts of the log.
#pragma once

#include <vector>

#include "hstu/checkpoint/section.h"
#include "hstu/run/log.h"
#include "hstu/run/running_metrics.h"
#include "hstu/run/state.h"
#include "hstu/training/experiment.h"

namespace hstu {

// Dense parameters, their optimizer, every table, counts of bad ids; the run's metrics. What is given must
// outlive the sections.
std::vector<Section> sections(Learner& learner, RunningMetrics& metrics);

// Fills the experiment from a checkpoint of a run, for those who do not go on with the run. Throws Error when
// it was made from another dataset or model.
RunState load_run(const Checkpoint& checkpoint, Experiment& experiment);

RunFacts facts_of(const Experiment& experiment);
LearnerCounts counts_of(const Learner& learner);

}  // namespace hstu
