// The dataset, samples and learner of a configuration, shared by training and evaluation.
#pragma once

#include <cstdint>
#include <memory>

#include "hstu/batching/loader.h"
#include "hstu/batching/schedule.h"
#include "hstu/comm/communicator.h"
#include "hstu/experiment/device_choice.h"
#include "hstu/experiment/learner.h"
#include "hstu/experiment/task_data.h"

namespace hstu {

// The training batches of a run from `start` onwards.
BatchSchedule training_schedule(const RunOptions& options, const Anchors& anchors, BatchCursor start);
// The batches that the loader of a run has ready at most.
inline int training_batches_ready(const RunOptions& options) {
  return 2 * static_cast<int>(options.data.workers) + 2;
}

class Experiment {
 public:
  // `data`: of the options. Its model and objective are moved to the learner, unless `learner` is given,
  // which is then the experiment's (learner_without_data.h).
  Experiment(const RunOptions& options, std::unique_ptr<TaskData> data, Communicator& comm = one_rank(),
             std::unique_ptr<Learner> learner = nullptr);
  // Throws UsageError as TaskData does.
  explicit Experiment(const RunOptions& options, Communicator& comm = one_rank());

  const RunOptions& options() const { return learner_->options; }
  const Dataset& dataset() const { return data_->dataset; }
  const Anchors& anchors() const { return data_->anchors; }
  const SampleBuilder& samples() const { return data_->samples; }                        // of training
  const SampleBuilder& evaluation_samples() const { return data_->evaluation_samples; }  // one example each
  const TrainingItems& training_items() const { return *data_->items; }  // where negatives are drawn
  const std::vector<std::int64_t>& catalogue() const { return data_->catalogue; }  // TaskData::catalogue
  // After a model was read that was trained on other data: the catalogue has the items that it knows.
  void take_known_items();
  bool has_baseline() const { return data_->task.has_baseline; }
  const DeviceChoice& device() const { return device_; }
  Learner& learner() { return *learner_; }
  const Learner& learner() const { return *learner_; }

  // The training batches from `start` onwards.
  BatchSchedule schedule(BatchCursor start) const;
  // The samples of the whole run, ignoring training.max_steps.
  std::int64_t train_samples() const;
  // The number of the last step of a run that has done `step` and continues at `next`.
  std::int64_t last_step(std::int64_t step, BatchCursor next) const;
  // Where a run continues whose steps had `before` samples until now, at `next` if that is the number of
  // today; `window_end`: its last step was the last one of its window. UsageError inside of a window if the
  // samples before are not a multiple of today's step.
  BatchCursor rescaled(BatchCursor next, bool window_end, std::int64_t before) const;
  // The samples of the steps up to `step`; an estimate if some of their batches are not full.
  std::int64_t samples_until(std::int64_t step) const;

 private:
  std::unique_ptr<TaskData> data_;  // without its model and objective
  DeviceChoice device_;
  std::unique_ptr<Learner> learner_;
};

// This rank's parts of the training batches from `start` onwards. The experiment must outlive it.
std::unique_ptr<Loader> training_loader(Experiment& experiment, BatchCursor start, Communicator& comm);

}  // namespace hstu
