// One rank of a run: what all ranks do at each command, in the order of collectives that all of them keep.
// Rank 0, the leader, decides which command is next (train.h); the others follow.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "hstu/base/progress_watch.h"
#include "hstu/embedding/saved_rows.h"
#include "hstu/experiment/command.h"
#include "hstu/experiment/memory_watch.h"
#include "hstu/run/log.h"
#include "hstu/step/attention_meter.h"
#include "hstu/training/evaluation.h"
#include "hstu/training/next_step.h"
#include "hstu/training/train.h"

namespace hstu {

class Session {
 public:
  // `data`: of the request's options. Fills the learner from `checkpoint`, which is the same on all ranks
  // (same_checkpoint), or as RunOptions::warm_start says. `learner`: of learner_before_data(), which is made
  // again if the dataset asks for another. UsageError on rank 0, EndedRank on the others, if the ranks
  // disagree.
  Session(const TrainRequest& request, std::unique_ptr<TaskData> data, Communicator& comm,
          const std::optional<Checkpoint>& checkpoint, std::unique_ptr<Learner> learner = nullptr);

  // The commands. Of the leader each announces itself; the others have received it.

  // Begins the step after those that have begun. `on_predictions`: see StepContext.
  BegunStep begin_step(std::function<void(const Tally&)> on_predictions = {});
  // Steps that the ranks have told each other of, in their order.
  struct SharedSteps {
    std::vector<StepResult> results;           // of the global batches
    std::shared_ptr<const Tally> predictions;  // null: begin_step() has given them away
  };
  struct StepOutcome {
    SharedSteps steps;                    // up to this one; none: the ranks share them later
    bool any_stops = false;               // a rank got the signal to stop
    std::optional<LearnerCounts> counts;  // of a step of which the log has a line
  };
  // Ranks share steps when the log has a line; one rank has nothing to share.
  StepOutcome finish_step(BegunStep& begun);
  // Whether evaluate() has samples: some are held out, or evaluation.next_window is set and the step that
  // begin_step() begins next is the first of a window that was never trained.
  bool can_evaluate() const;
  // Those that are not shared.
  SharedSteps share_steps();
  // Empty if a rank got the signal to stop meanwhile. Throws the same NotFiniteError on all ranks.
  std::optional<EvaluationResult> evaluate();
  // Calls write() on the leader, with all that a checkpoint has; the others send it their rows meanwhile.
  using WriteSections = std::function<void(std::vector<Section> sections, ServedRows& rows)>;
  void save(const WriteSections& write = {});
  void finish_profile() { profiler_->finish(); }

  // Performs what the leader announces until the end of the run.
  void follow();
  void announce_end();

  // Whether the log has a line of the step, of which there were so many with it.
  bool logs_at(std::int64_t step) const { return step % request_.options.metrics.every_steps == 0; }

  // Whether the results of the step are read before the next one begins.
  bool measures(std::int64_t step) const { return profiler_->is_active() || attention_meter_.measures(step); }

  int ranks() const { return comm_.size(); }
  const Experiment& experiment() const { return experiment_; }
  RunningMetrics& metrics() { return *metrics_; }
  const Evaluator& evaluator() const { return *evaluator_; }  // of the last evaluation
  Profiler& profiler() { return *profiler_; }
  const Profiler& profiler() const { return *profiler_; }
  const RunState& first_state() const { return first_state_; }  // of the checkpoint
  const Json& warm_start() const { return warm_start_; }        // what it took; null: nothing

 private:
  bool is_leader() const { return comm_.rank() == 0; }
  void announce(Command command);
  RunState load(const std::optional<Checkpoint>& checkpoint);
  void begin_profile();
  SharedSteps take_steps();

  const TrainRequest& request_;
  Communicator& comm_;
  Experiment experiment_;
  std::unique_ptr<RunningMetrics> metrics_;  // of the leader; on other ranks only a part of the checkpoint
  Json warm_start_;
  RunState first_state_;
  std::unique_ptr<Evaluator> evaluator_;  // with evaluation.next_window, of the last window scored
  std::optional<Profiler> profiler_;
  MemoryWatch memory_watch_;
  AttentionMeter attention_meter_;
  ProgressWatch watch_;
  BatchCursor next_;                       // of the step that begins next
  std::unique_ptr<Loader> loader_;         // since the first step
  std::int64_t begun_ = 0, finished_ = 0;  // steps of the run
  std::vector<StepResult> steps_;          // not shared
  std::shared_ptr<Tally> predictions_;     // of those, of several ranks
};

}  // namespace hstu
