// Which number of ranks that share heads (ranks.tensor) is best for a configuration.
#pragma once

#include <string>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/plan/memory_plan.h"
#include "hstu/plan/step_estimate.h"

namespace hstu {

struct TensorChoice {
  int tensor = 1;
  StepEstimate step;
  std::int64_t memory = 0;  // bytes of a rank, MemoryPlan::total()
  bool fits = true;
};

// For every power of two that divides the ranks and the heads: 1 alone where heads cannot be shared. Opens
// the dataset; throws UsageError as TaskData does.
std::vector<TensorChoice> tensor_choices(const RunOptions& options, const PlannedDevice& device,
                                         const GpuSpecs& gpu, const Interconnect& net, int ranks);

// The fastest of those that fit; where none fits, that with the least memory.
const TensorChoice& best_of(const std::vector<TensorChoice>& choices);

std::string to_text(const std::vector<TensorChoice>& choices);
Json to_json(const std::vector<TensorChoice>& choices);

}  // namespace hstu
