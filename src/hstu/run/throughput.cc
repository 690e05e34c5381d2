#include "hstu/run/throughput.h"

namespace hstu {

void Throughput::add(const StepResult& result, double step_ms, double wait_ms) {
  step_ms_ += step_ms;
  wait_ms_ += wait_ms;
  division_ms_ += result.division.ms;
  division_exposed_ms_ += result.division.exposed_ms;
  divides_ = !result.division.work.empty();
  if (result.stages) {
    stages_ += *result.stages;
    ++timed_steps_;
  }
  flops_ += result.flops;
  memory_peak_ = result.memory_peak;
  ++steps_;
  samples_ += result.samples;
  tokens_ += result.tokens;
}

void Throughput::move_to(Json& line, std::int64_t samples_left) {
  const double seconds = (step_ms_ + wait_ms_) / 1000;
  const auto steps = static_cast<double>(steps_);
  const double samples_per_s = static_cast<double>(samples_) / seconds;
  line.update({{"step_ms", step_ms_ / steps},
               {"data_wait_ms", wait_ms_ / steps},
               {"samples_per_s", samples_per_s},
               {"left_s", static_cast<double>(samples_left) / samples_per_s},
               {"tokens_per_s", static_cast<double>(tokens_) / seconds},
               {"memory_peak_mib", static_cast<double>(memory_peak_) / (1 << 20)}});
  if (timed_steps_ > 0) {
    const auto timed = static_cast<double>(timed_steps_);
    line.update({{"lookup_ms", stages_.lookup_ms / timed},
                 {"forward_ms", stages_.forward_ms / timed},
                 {"backward_ms", stages_.backward_ms / timed},
                 {"update_ms", stages_.update_ms / timed}});
  }
  if (divides_) {
    line["division_ms"] = division_ms_ / steps;
    line["division_exposed_ms"] = division_exposed_ms_ / steps;
  }
  const auto add = [&](const char* tflops, const char* share, const LayerFlops& flops) {
    const double rate = static_cast<double>(flops.step()) / seconds;
    if (rate > 0) line[tflops] = rate / 1e12;
    if (rate > 0 && peak_) line[share] = rate / *peak_;
  };
  add("tflops", "mfu", flops_.model);
  add("computed_tflops", "computed_mfu", flops_.computed);
  *this = Throughput(peak_);
}

}  // namespace hstu
