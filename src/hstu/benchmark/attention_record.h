// What is reported of one timed attention, and of the GPU.
#pragma once

#include <optional>
#include <string>

#include "hstu/base/json.h"
#include "hstu/benchmark/attention_benchmark.h"
#include "hstu/device/gpu_specs.h"

namespace hstu {

// The first GPU as the driver names it. `specs`: none for a model that gpu_specs does not know.
struct BenchmarkGpu {
  std::string name = "unknown GPU";
  std::optional<GpuSpecs> specs;
};
BenchmarkGpu benchmark_gpu();

// FLOPs a second of the type at most.
double peak_of(const GpuSpecs& specs, AttentionType type);

// One direction ("fwd" or "bwd") of a shape. The share of the peak refers to the dense rate of the GPU for
// `type`, the memory floor to its memory bandwidth; both are left out for a GPU without specs.
Json attention_record(const std::string& shape, const std::string& direction, AttentionType type,
                      const AttentionTime& time, const std::optional<GpuSpecs>& specs);

}  // namespace hstu
