#include "hstu/options/make_task.h"

#include "hstu/task/kind.h"

namespace hstu {

Task make_task(const RunOptions& options, const DatasetFacts& facts) {
  return options.model.kind().make(task_request(options), facts);
}

}  // namespace hstu
