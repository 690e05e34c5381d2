#include "hstu/experiment/task_data.h"

#include "hstu/options/make_task.h"
#include "hstu/task/dataset_facts.h"

namespace hstu {

TaskData::TaskData(const RunOptions& options)
    : dataset(options.data.path),
      task(make_task(options, facts_of(dataset))),
      anchors(find_anchors(dataset, options.data.options, options.evaluation.holdout)),
      samples(dataset, task.data),
      evaluation_samples(dataset, task.evaluation) {}

}  // namespace hstu
