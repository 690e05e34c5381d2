// The training step of the laptop configuration on synthetic batches: what `./dev bench cpu` times against
// PyTorch.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/base/json.h"

namespace hstu {

struct StepBenchmarkOptions {
  std::int64_t steps = 60, warmup = 10;
  std::uint64_t seed = 1;
  std::string device = "host";
};

// 64 wide, 2 layers, 2 heads of 32, 11 tables of 100,000 rows, batch 32, histories of 64 to 256 events; ids
// uniform. Batches are made, and copied to the device, beforehand and visited in turn. Gives {"program",
// "median_ms", "p10_ms", "p90_ms", "samples_per_s", "tokens_per_s", "tflops", "computed_tflops"
// (docs/metrics.md), "peak_rss_mib", "stages": the list of stage_table.h over one further step for each
// batch}.
Json benchmark_step(const StepBenchmarkOptions& options);

}  // namespace hstu
