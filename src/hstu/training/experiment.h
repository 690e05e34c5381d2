// A dataset and what learns from it, as a configuration says. Training and evaluation share it.
#pragma once

#include <cstdint>

#include "hstu/batching/anchors.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/batching/schedule.h"
#include "hstu/dataset/dataset.h"
#include "hstu/task/task.h"
#include "hstu/training/learner.h"

namespace hstu {

class Experiment {
 public:
  // Opens the dataset, finds the anchors and makes the model. Throws UsageError where the configuration and
  // the dataset do not fit.
  explicit Experiment(const RunOptions& options);

  const RunOptions& options() const { return learner_.options; }
  const Dataset& dataset() const { return dataset_; }
  const Anchors& anchors() const { return anchors_; }
  const SampleBuilder& samples() const { return samples_; }
  Learner& learner() { return learner_; }
  const Learner& learner() const { return learner_; }

  // The batches of training from `start` on.
  BatchSchedule schedule(BatchCursor start) const;
  // Of the whole run, as long as training.max_steps does not end it.
  std::int64_t train_samples() const;

 private:
  Dataset dataset_;
  Task task_;  // its model goes to the learner
  Anchors anchors_;
  SampleBuilder samples_;
  Learner learner_;
};

}  // namespace hstu
