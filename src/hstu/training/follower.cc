#include "hstu/training/follower.h"

#include <memory>
#include <optional>

#include "hstu/base/error.h"
#include "hstu/embedding/saved_rows.h"
#include "hstu/experiment/turn.h"
#include "hstu/run/state.h"
#include "hstu/run/warm_start.h"
#include "hstu/step/dense_shards.h"
#include "hstu/training/evaluation.h"
#include "hstu/training/next_step.h"
#include "hstu/training/run_parts.h"

namespace hstu {
namespace {

class Follower {
 public:
  Follower(const TrainRequest& request, Communicator& comm)
      : request_(request),
        comm_(comm),
        checkpoint_(same_checkpoint(std::nullopt, request.folder, comm_)),
        experiment_(request.options, comm),
        metrics_(request.options.metrics.window_samples),
        state_(first_state()),
        evaluator_(experiment_, {}) {
    check_agreement(experiment_, request.version, state_.step, comm_);
    profiler_.emplace(request.profile, experiment_.learner().compute, Path(), state_.step,
                      experiment_.last_step(), comm_,
                      experiment_.learner().gpus.get());  // rank 0 has found the steps right
  }

  void run() {
    for (Turn turn = next_turn(comm_); turn != Turn::end; turn = next_turn(comm_)) {
      if (turn == Turn::step) step();
      if (turn == Turn::profile) profiler_->finish();
      if (turn == Turn::evaluate) evaluator_.run(request_.stop, comm_);
      if (turn == Turn::save) {
        comm_.enter("save");
        gather_state(experiment_.learner().dense_optimizer, comm_);
        serve_rows(experiment_.learner().tables);
      }
    }
  }

 private:
  RunState first_state() {
    if (checkpoint_)
      return load_run(*checkpoint_, experiment_.dataset(), sections(experiment_.learner(), metrics_));
    Learner& learner = experiment_.learner();
    const WarmStartSection& section = request_.options.warm_start;
    if (!section.checkpoint.empty())
      warm_start(section, learner.model->parameters().all(), learner.tables, learner.compute.stream);
    return {};
  }

  void step() {
    if (!loader_) loader_ = training_loader(experiment_, state_.next, comm_);
    const StepResult result = begin_next(experiment_, *loader_, *profiler_, state_.step, comm_).step.finish();
    ++state_.step;
    profiler_->end_step(state_.step, result);
    any_stops(request_.stop, comm_);
    if (state_.step % request_.options.metrics.every_steps == 0) counts_of(experiment_.learner(), comm_);
  }

  const TrainRequest& request_;
  Communicator& comm_;
  std::optional<Checkpoint> checkpoint_;
  Experiment experiment_;
  RunningMetrics metrics_;  // of rank 0; here only a part of the checkpoint
  RunState state_;
  Evaluator evaluator_;
  std::unique_ptr<Loader> loader_;
  std::optional<Profiler> profiler_;
};

}  // namespace

void follow(const TrainRequest& request, Communicator& comm) {
  Follower(request, comm).run();
}

}  // namespace hstu
