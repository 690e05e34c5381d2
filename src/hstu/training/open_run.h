// What the leader of a run has before its first command.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hstu/config/config_difference.h"
#include "hstu/mlperf/submission_log.h"
#include "hstu/run/cadence.h"
#include "hstu/run/lock.h"
#include "hstu/training/session.h"

namespace hstu {

struct OpenedRun {
  std::unique_ptr<RunLock> lock;
  std::optional<Checkpoint> checkpoint;  // to resume from
  std::vector<ConfigDifference> changed;
  std::unique_ptr<SubmissionLog> submission;  // of a new run with mlperf = true; else null
  std::unique_ptr<Session> session;
  std::int64_t planned_memory = 0;  // bytes: check_fits() in start_plan.h; 0: not planned
};
OpenedRun open_run(const TrainRequest& request, Communicator& comm);

// The log of a resumed run with mlperf = true.
std::unique_ptr<SubmissionLog> continue_submission(const TrainRequest& request, const Session& session,
                                                   const RunState& state);

// The points of the grid with mlperf = true, else what [evaluation] says.
EvaluationCadence evaluation_cadence(const RunOptions& options, const Experiment& experiment);

}  // namespace hstu
