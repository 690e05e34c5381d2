#include "hstu/experiment/task_data.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/options/make_task.h"
#include "hstu/task/dataset_facts.h"

namespace hstu {
namespace {

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

}  // namespace

TaskData::TaskData(const RunOptions& options) : TaskData(options, Dataset(options.data.path), {}) {}

TaskData::TaskData(const RunOptions& options, Dataset opened, const std::vector<std::string>& earlier)
    : dataset(std::move(opened)),
      task(make_task(options, facts_of(dataset))),
      anchors(find_anchors(dataset, options.data.options, options.evaluation.holdout,
                           stages_of(dataset, earlier))),
      samples(dataset, task.data),
      evaluation_samples(dataset, task.evaluation) {}

}  // namespace hstu
