// A task with the dataset that it is learnt from: what a start opens and makes once, for plans and for
// training.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hstu/batching/anchors.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/batching/training_items.h"
#include "hstu/dataset/dataset.h"
#include "hstu/options/options.h"
#include "hstu/task/task.h"

namespace hstu {

struct TaskData {
  // Opens the dataset, makes the task with its model, and finds the anchors. Throws UsageError if the
  // configuration does not fit the dataset.
  explicit TaskData(const RunOptions& options);
  // The same of an open dataset. `earlier`: ids of the datasets with which the run was trained before this
  // one extended them, the oldest first; each begins a stage of the schedule. `is_trained`: the model is, so
  // that labels which it does not know are no error.
  TaskData(const RunOptions& options, Dataset opened, const std::vector<std::string>& earlier,
           bool is_trained = true);
  TaskData(const TaskData&) = delete;
  TaskData& operator=(const TaskData&) = delete;

  Dataset dataset;
  Task task;  // its model and objective move to the learner
  Anchors anchors;
  std::shared_ptr<const TrainingItems> items;  // null: no negatives are drawn
  // Ids of all items, ascending, if the objective ranks them: those that have room in their table; else none.
  std::vector<std::int64_t> catalogue;
  SampleBuilder samples;             // of training
  SampleBuilder evaluation_samples;  // one example each
};

}  // namespace hstu
