// What a benchmark says of each stage of a step: its time in each pass, what it computes, and the bytes that
// it moves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/device/gpu_specs.h"
#include "hstu/tensor/stage_timer.h"

namespace hstu {

// What a stage needs in one step, all passes together; 0: not counted.
struct StageNeeds {
  double flops = 0;
  double least_bytes =
      0;  // that any implementation of this stage reads and writes: its inputs, outputs and weights once
};
using NeedsByStage = std::map<std::string, StageNeeds, std::less<>>;

// The sums of a stage over some steps.
struct StageSums {
  std::string stage;  // "other": of the sections, outside of stages
  double forward_ms = 0, backward_ms = 0, update_ms = 0;
  std::int64_t bytes = 0;  // Trace::touches_bytes

  double ms() const { return forward_ms + backward_ms + update_ms; }
};

// Adds the ranges of a step to the sums, which are in the order in which stages first appear. Ranges in no
// other are sections (step/step_sections.h), those right inside them stages. The lookup belongs to the
// forward pass.
void add_stages(std::span<const StageTime> ranges, std::vector<StageSums>& sums);

// A list of {"stage", "forward_ms", "backward_ms", "update_ms" (means over `steps`), "share_of_time",
// "tflops", "share_of_peak", "moved_gib", "least_gib", "share_of_bandwidth"}; null where a number is not
// counted, and for shares of a GPU's data sheet without one. `peak`: FLOPs a second. share_of_bandwidth: the
// moved bytes over the time, of the sheet's bandwidth.
Json stages_json(std::span<const StageSums> sums, std::int64_t steps, const NeedsByStage& needs,
                 std::optional<double> peak, const std::optional<GpuSpecs>& specs);

// That list as aligned columns; "-" for null.
std::string stage_table(const Json& stages);

}  // namespace hstu
