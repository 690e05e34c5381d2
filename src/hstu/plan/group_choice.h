// How many ranks should share the heads of layers (ranks.tensor) and the tokens of long samples
// (ranks.context).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/plan/memory_plan.h"
#include "hstu/plan/step_estimate.h"

namespace hstu {

struct GroupChoice {
  int tensor = 1, context = 1;
  double flops = 0;  // of the rank with the most, in a batch
  StepEstimate step;
  std::int64_t memory = 0;  // bytes of a rank, MemoryPlan::total()
  bool fits = true;
};

// The GPU that is planned for; none of the host, and of a GPU that the table does not have.
std::optional<GpuSpecs> specs_of(const PlannedDevice& device);

// For every power of two that divides the ranks and the heads: `tensor` 1 alone where heads cannot be shared.
// Each with every power of two up to 8 for `context`, if the run's first batches have long samples; on a GPU
// those that divide the heads. Opens the dataset; throws UsageError as TaskData does.
std::vector<GroupChoice> group_choices(const RunOptions& options, const PlannedDevice& device,
                                       const GpuSpecs& gpu, const Interconnect& net, int ranks);

// The fastest of those that fit, where larger groups must be faster by more than a twentieth; where none
// fits, that with the least memory. `by_flops`: of an unknown device, whose times are FLOPs.
const GroupChoice& best_of(const std::vector<GroupChoice>& choices, bool by_flops = false);

std::string to_text(const std::vector<GroupChoice>& choices);
Json to_json(const std::vector<GroupChoice>& choices);

// Options with a number in place of ranks.context = 0, and why it is this one, a line for people; "": the
// options had a number.
struct ChosenContext {
  RunOptions options;
  std::string why;
};
// `link`, `network`, `gpus_per_host` of `net`: 0 for link is the GPU's own. Opens the dataset, as above, if
// there is a choice.
ChosenContext with_context(const RunOptions& options, const PlannedDevice& device, int ranks,
                           const Interconnect& net = {});

}  // namespace hstu
