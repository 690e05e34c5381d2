#include "hstu/plan/start_plan.h"

#include "hstu/base/terminal.h"
#include "hstu/experiment/device_choice.h"
#include "hstu/plan/memory_plan.h"
#include "hstu/plan/rank_plan.h"

namespace hstu {

std::int64_t check_fits(const RunOptions& options, const TaskData& data, int ranks, int ranks_here) {
  PlannedDevice device = planned_device(choose_device(options.device).device);
  if (device.device.is_host()) device.memory_bytes /= ranks_here;
  device = capped(device, options);
  const MemoryPlan plan = plan_memory(options, data, device.device, ranks);
  check_fits(plan, device);
  if (ranks > 1)
    print_note("{}", tables_text(plan_ranks(options, data, ranks, 1), plan));  // of the first batch
  // A host keeps the dense state elsewhere.
  return plan.activations + (device.device.is_host() ? 0 : plan.dense_bytes());
}

}  // namespace hstu
