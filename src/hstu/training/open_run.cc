#include "hstu/training/open_run.h"

#include <algorithm>
#include <utility>

#include "hstu/base/terminal.h"
#include "hstu/experiment/divided_heads.h"
#include "hstu/mlperf/submission_facts.h"
#include "hstu/plan/start_plan.h"
#include "hstu/run/resume.h"
#include "hstu/run/state.h"
#include "hstu/training/run_parts.h"

namespace hstu {
namespace {

SubmissionData submission_data_of(const RunOptions& options, const Experiment& experiment) {
  const std::int64_t scored = experiment.anchors().evaluation.size(), limit = options.evaluation.max_samples;
  return submission_data(options, experiment.anchors().training.size(),
                         limit > 0 ? std::min(limit, scored) : scored);
}

}  // namespace

OpenedRun open_run(const TrainRequest& request, Communicator& comm) {
  // 1 No other process trains this run.
  auto lock = std::make_unique<RunLock>(request.folder.lock());
  // 2 All ranks resume from one checkpoint.
  std::optional<Checkpoint> newest;
  if (request.resume) newest = checkpoint_to_resume(request.folder, request.from_step);
  std::optional<Checkpoint> checkpoint = same_checkpoint(std::move(newest), request.folder, comm);
  // 3 The configuration differs from the run's as allowed.
  std::vector<ConfigDifference> changed;
  if (request.resume)
    changed = changed_keys(request.folder, checkpoint, request.options, request.allowed_changes);
  check_tensor_ranks(request.options, comm.size());
  // 4 MLPerf: the learner exists before the clock of the run starts, and no file of the dataset is open then.
  std::unique_ptr<SubmissionLog> submission;
  if (request.options.mlperf && !checkpoint)
    submission = std::make_unique<SubmissionLog>(request.folder.mlperf(),
                                                 submission_facts(request.options, comm.size()),
                                                 request.options.submission.caches_cleared);
  std::unique_ptr<Learner> learner = learner_before_data(request.options, checkpoint, comm);
  if (submission)
    print_note("initialisation took {:.1f} s; a run may take 30 minutes\n", submission->end_init());
  // 5 The dataset and the task, for all that follows.
  auto data = open_data(request.options, checkpoint);
  // 6 The run fits the device, which a learner that exists has shown.
  const std::int64_t planned =
      learner ? 0 : check_fits(request.options, *data, comm.size(), request.ranks_here);
  // 7 Tables and optimizers; their state; the ranks agree.
  auto session = std::make_unique<Session>(request, std::move(data), comm, checkpoint, std::move(learner));
  tell_idle(session->experiment().learner(), session->ranks());
  if (submission) submission->begin_training(submission_data_of(request.options, session->experiment()));
  return {std::move(lock),       std::move(checkpoint), std::move(changed),
          std::move(submission), std::move(session),    planned};
}

std::unique_ptr<SubmissionLog> continue_submission(const TrainRequest& request, const Session& session,
                                                   const RunState& state) {
  return std::make_unique<SubmissionLog>(
      request.folder.mlperf(), submission_facts(request.options, session.ranks()),
      submission_data_of(request.options, session.experiment()), state.step, state.evaluated_at);
}

EvaluationCadence evaluation_cadence(const RunOptions& options, const Experiment& experiment) {
  if (!options.mlperf) return {options.evaluation, experiment.schedule({}).batches_per_epoch()};
  const EvaluationGrid grid = submission_data_of(options, experiment).grid;
  return {grid.interval_steps, grid.first_step};
}

}  // namespace hstu
