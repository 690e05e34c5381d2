#include "hstu/experiment/task_data.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/batching/all_items.h"
#include "hstu/batching/user_contexts.h"
#include "hstu/options/make_task.h"
#include "hstu/task/dataset_facts.h"

namespace hstu {
namespace {

std::shared_ptr<const TrainingItems> items_of(const Dataset& dataset, const Task& task,
                                              const Holdout& holdout) {
  bool draws = false, by_day = false;
  for (const NegativeOptions* const negatives : {&task.data.negatives, &task.evaluation.negatives}) {
    if (negatives->per_positive == 0) continue;
    draws = true;
    by_day = by_day || negatives->from == NegativeSource::items_of_the_day;
  }
  return draws ? std::make_shared<const TrainingItems>(dataset, holdout, by_day) : nullptr;
}

// The items that the table of items may have.
std::vector<std::int64_t> catalogue_of(const Dataset& dataset, const Task& task) {
  if (!task.objective->ranks_items()) return {};
  std::vector<std::int64_t> items = all_items(dataset);
  if (!task.objective->catalogues().empty())
    std::erase_if(items,
                  [rows = task.model->features().front().rows](std::int64_t id) { return id >= rows; });
  return items;
}

// Every item of the dataset, if evaluations rank among them.
std::vector<std::int64_t> ranked_items(const Dataset& dataset, const NegativeOptions& negatives) {
  if (negatives.per_positive == 0 || negatives.from != NegativeSource::all) return {};
  return all_items(dataset);
}

// The segments that a run had in each stage.
std::vector<std::size_t> stages_of(const Dataset& dataset, const std::vector<std::string>& earlier) {
  std::vector<std::size_t> stages;
  for (const std::string& id : earlier) {
    const auto& folders = dataset.folders();
    const auto last = std::find_if(folders.begin(), folders.end(),
                                   [&](const SegmentFolder& segment) { return segment.manifest.id == id; });
    check(last != folders.end(), "{} does not extend the dataset {}, with which the run was trained",
          dataset.folder().string(), id);
    stages.push_back(static_cast<std::size_t>(last - folders.begin()) + 1);
  }
  stages.push_back(dataset.segments().size());
  return stages;
}

Task task_of(const RunOptions& options, const Dataset& dataset, bool is_trained) {
  if (options.model.options().data_needs().user_contexts)
    check_user_contexts(dataset, options.features.context);
  Task task = make_task(options, facts_of(dataset));
  task.data.weighted = options.training.weighted && dataset.has_weights();
  if (is_trained) {
    task.data.events.new_labels = NewLabels::left_out;
    task.evaluation.events.new_labels = NewLabels::of_none;
  }
  return task;
}

}  // namespace

TaskData::TaskData(const RunOptions& options) : TaskData(options, Dataset(options.data.path), {}, false) {}

TaskData::TaskData(const RunOptions& options, Dataset opened, const std::vector<std::string>& earlier,
                   bool is_trained)
    : dataset(std::move(opened)),
      task(task_of(options, dataset, is_trained)),
      anchors(find_anchors(dataset, options.data.options, options.evaluation.holdout,
                           stages_of(dataset, earlier), !is_trained)),
      items(items_of(dataset, task, anchors.holdout)),
      catalogue(catalogue_of(dataset, task)),
      samples(dataset, task.data, items, catalogue),
      evaluation_samples(dataset, task.evaluation, items, ranked_items(dataset, task.evaluation.negatives)) {
  if (task.data.catalogue.frequencies) samples.count_targets(anchors.training);
}

}  // namespace hstu
