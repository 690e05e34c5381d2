// The rates of a train line: what the steps since the line before took, by section, and what they computed.
#pragma once

#include <cstdint>
#include <optional>

#include "hstu/base/json.h"
#include "hstu/run/step_result.h"

namespace hstu {

class Throughput {
 public:
  // `peak`: FLOPs a second that the device computes at most in the run's precision, from its data sheet.
  explicit Throughput(std::optional<double> peak) : peak_(peak) {}

  // A step of this process. step_ms: without the wait for its batch.
  void add(const StepResult& result, double step_ms, double wait_ms);
  // Adds the figures of docs/metrics.md to a train line and forgets the steps. `samples_left`: of the run.
  // Adds no tflops if the model does not count FLOPs, and no mfu without a peak.
  void move_to(Json& line, std::int64_t samples_left);

 private:
  std::optional<double> peak_;
  double step_ms_ = 0, wait_ms_ = 0;
  double division_ms_ = 0, division_exposed_ms_ = 0;
  bool divides_ = false;
  StageTimes stages_;
  StackFlops flops_;
  std::int64_t memory_peak_ = 0;
  std::int64_t steps_ = 0, timed_steps_ = 0, samples_ = 0, tokens_ = 0;
};

}  // namespace hstu
