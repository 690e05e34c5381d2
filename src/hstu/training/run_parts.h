// What learns, as sections of checkpoints and as facts and counts of the log.
#pragma once

#include <vector>

#include "hstu/checkpoint/section.h"
#include "hstu/run/log.h"
#include "hstu/run/state.h"
#include "hstu/training/experiment.h"

namespace hstu {

// Dense parameters, their optimizer, every table, counts of bad ids. The learner must outlive the sections.
std::vector<Section> sections(Learner& learner);

// Fills the experiment from a checkpoint of a run and gives the state of the run. Throws Error when it was
// made from another dataset or model.
RunState load_run(const Checkpoint& checkpoint, Experiment& experiment);

RunFacts facts_of(const Experiment& experiment);
LearnerCounts counts_of(const Learner& learner);

}  // namespace hstu
