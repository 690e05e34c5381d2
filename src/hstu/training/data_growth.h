// A run whose dataset was extended since its checkpoint was saved.
#pragma once

#include <optional>
#include <string>

#include "hstu/checkpoint/checkpoint.h"
#include "hstu/experiment/experiment.h"
#include "hstu/run/log.h"
#include "hstu/run/state.h"
#include "hstu/training/session.h"

namespace hstu {

// Empty if the dataset is that of the checkpoint, or there is none. Prints a note on what is new.
std::optional<DataGrowth> growth_of(const Session& session, const std::optional<Checkpoint>& checkpoint);

// The state of a checkpoint, from which a run goes on. Its best evaluation is one by `metric` and of the
// samples that are evaluated now; `others`: they are others than before.
RunState state_to_continue(RunState state, bool others, const std::string& metric);

// What the checkpoints of a run record, which was resumed from `checkpoint` if there is one.
RunOrigin origin_of(const Experiment& experiment, const RunOptions& options,
                    const std::optional<Checkpoint>& checkpoint);

}  // namespace hstu
