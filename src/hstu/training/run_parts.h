// The learner as sections of checkpoints and as facts and counts for the log.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hstu/checkpoint/section.h"
#include "hstu/experiment/experiment.h"
#include "hstu/objective/running_metrics.h"
#include "hstu/run/log.h"
#include "hstu/run/state.h"
#include "hstu/step/dense_shards.h"
#include "hstu/training/train.h"

namespace hstu {

// Of a run that begins.
std::unique_ptr<RunningMetrics> running_metrics(const Experiment& experiment);

// With mlperf = true, of a run that begins, the learner of learner_without_data() once all ranks have theirs;
// else null.
std::unique_ptr<Learner> learner_before_data(const RunOptions& options,
                                             const std::optional<Checkpoint>& checkpoint, Communicator& comm);

// The data of a run to be continued: those of the configuration, which may have been extended since the
// checkpoint was saved. Without a checkpoint, of a run that begins. UsageError if they are others.
std::unique_ptr<TaskData> open_data(const RunOptions& options, const std::optional<Checkpoint>& checkpoint);
// The data as they were when the checkpoint was saved.
std::unique_ptr<TaskData> open_data_of(const RunOptions& options, const Checkpoint& checkpoint);

// Dense parameters, their optimizer, every table, counts of bad ids, and the run's metrics. The arguments
// must outlive the sections. `dense_state`, to save: of gather_state().
std::vector<Section> sections(Learner& learner, RunningMetrics& metrics, DenseState dense_state = {});

// Fills the experiment from a checkpoint of a run, for callers that do not continue the run. Throws Error if
// the checkpoint was made from another dataset or model.
RunState load_run(const Checkpoint& checkpoint, Experiment& experiment);
// The same for an experiment on any dataset that the model can read (check_readable in run/other_data.h).
RunState load_run_for_other_data(const Checkpoint& checkpoint, Experiment& experiment);

RunFacts facts_of(const Experiment& experiment);
// Of all ranks, which call it together.
LearnerCounts counts_of(const Learner& learner, Communicator& comm);

// Notes what the configuration asks for and this run has no use for, and that it saves nothing.
void tell_idle(const Learner& learner, int ranks);

// The error of a run whose numbers are no longer finite, `what`. Names the newest checkpoint as good: each
// was checked when it was written, or when it was read to resume.
[[noreturn]] void fail_not_finite(const RunFolder& folder, const std::string& what);

// RUN/summary.json.
void write_summary(const RunFolder& folder, const TrainResult& result, const RunState& state,
                   MetricSpecs metrics, double training_seconds);

}  // namespace hstu
