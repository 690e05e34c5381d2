// metrics.attention_every: the time of attention by layer, in some steps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "hstu/base/json.h"
#include "hstu/model/hstu_stack.h"
#include "hstu/run/step_result.h"
#include "hstu/tensor/stage_timer.h"

namespace hstu {

class AttentionMeter {
 public:
  // Measures every so many steps; 0: none. `layers`: of the model; 0: it has none that can be measured.
  // `peak`: FLOPs a second of this rank's device; none: shares are left out.
  AttentionMeter(std::int64_t every, std::int64_t layers, std::optional<double> peak)
      : every_(every), layers_(layers), peak_(peak) {}

  // `step` from 1. No step may begin before the results of a measured one are read.
  bool measures(std::int64_t step) const { return every_ > 0 && layers_ > 0 && step % every_ == 0; }
  // The context of the step: `compute` with the trace that measures, or as it is.
  Context begin_step(std::int64_t step, const Context& compute);
  // `result`: of this rank alone.
  void end_step(std::int64_t step, const StepResult& result);

  // Of the latest measured step, once: attention_by_layer() and its number. Null: none since.
  Json take();

 private:
  std::int64_t every_, layers_;
  std::optional<double> peak_;
  std::optional<StageTimer> timer_;
  bool is_measuring_ = false;
  Json latest_;
};

// {"layers": [{"forward_ms", "forward_tflops", "forward_mfu", "backward_ms", ..}]} of the ranges of a step
// with any number of parts, whose layers computed `flops`. Layers that are computed again have no backward
// figures, as attention's forward pass is among them. Null if the ranges are not those of so many layers.
Json attention_by_layer(std::span<const StageTime> ranges, std::int64_t layers, const StackFlops& flops,
                        std::optional<double> peak);

}  // namespace hstu
