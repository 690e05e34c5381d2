#include "hstu/options/make_task.h"

#include "hstu/task/kind.h"

namespace hstu {

Task make_task(const RunOptions& options, const DatasetFacts& facts) {
  Task task = options.model.kind().make(task_request(options), facts);
  task.evaluation.negatives = options.evaluation.negatives;
  task.evaluation.negatives.exclude_seen = options.data.options.negatives.exclude_seen;
  for (DataOptions* const data : {&task.data, &task.evaluation})
    data->negatives_share_history = task.model->shares_histories();
  return task;
}

}  // namespace hstu
