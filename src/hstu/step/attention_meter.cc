#include "hstu/step/attention_meter.h"

#include <string_view>
#include <utility>
#include <vector>

#include "hstu/model/stages.h"
#include "hstu/step/step_sections.h"

namespace hstu {

Context AttentionMeter::begin_step(std::int64_t step, const Context& compute) {
  Context context = compute;
  is_measuring_ = measures(step);
  if (!is_measuring_) return context;
  // Sections and the stages inside them, of which attention is one.
  timer_.emplace(compute.stream, 2, compute.trace);
  context.trace = &*timer_;
  return context;
}

void AttentionMeter::end_step(std::int64_t step, const StepResult& result) {
  if (!is_measuring_ || !measures(step)) return;  // the next one may have begun
  is_measuring_ = false;
  const std::vector<StageTime> ranges = timer_->take();
  timer_.reset();
  latest_ = attention_by_layer(ranges, layers_, result.flops, peak_);
  if (!latest_.is_null()) latest_["step"] = step;
}

Json AttentionMeter::take() {
  return std::exchange(latest_, nullptr);
}

Json attention_by_layer(std::span<const StageTime> ranges, std::int64_t layers, const StackFlops& flops,
                        std::optional<double> peak) {
  std::vector<double> forward, backward;
  for (const StageTime& range : ranges) {
    if (range.name != kAttentionStage || range.outer < 0) continue;
    const std::string_view section = ranges[static_cast<std::size_t>(range.outer)].name;
    if (section == kForwardSection) forward.push_back(range.ms());
    if (section == kBackwardSection) backward.push_back(range.ms());
  }
  const auto n = static_cast<std::size_t>(layers);
  if (forward.empty() || forward.size() % n != 0) return nullptr;
  std::vector<double> forward_ms(n, 0.0), backward_ms(n, 0.0);
  for (std::size_t i = 0; i < forward.size(); ++i) forward_ms[i % n] += forward[i];
  const bool has_backward = backward.size() == forward.size();
  if (has_backward)
    for (std::size_t i = 0; i < backward.size(); ++i) backward_ms[n - 1 - i % n] += backward[i];
  // All layers but the last compute every token; the last what is left.
  const auto each = static_cast<double>(flops.model.attention) / static_cast<double>(layers);
  const double last = static_cast<double>(flops.computed.attention) - each * static_cast<double>(layers - 1);
  Json list = Json::array();
  for (std::size_t l = 0; l < n; ++l) {
    const double of_layer = l + 1 < n ? each : last;
    Json layer = Json::object();
    const auto add = [&](const std::string& pass, double ms, double computed) {
      layer[pass + "_ms"] = ms;
      if (ms <= 0) return;
      layer[pass + "_tflops"] = computed / ms * 1e-9;
      if (peak) layer[pass + "_mfu"] = computed / ms * 1e3 / *peak;
    };
    add("forward", forward_ms[l], of_layer);
    if (has_backward) add("backward", backward_ms[l], 2.5 * of_layer);
    list.push_back(std::move(layer));
  }
  return {{"layers", std::move(list)}};
}

}  // namespace hstu
