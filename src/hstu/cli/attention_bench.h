// The parts of `hstu bench attention`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hstu/benchmark/attention_benchmark.h"
#include "hstu/device/gpu_specs.h"

namespace hstu {

struct AttentionBenchWords {
  std::vector<std::string> shapes{"32,4096,4,128"};
  std::string mask = "causal", direction = "both", type = "bf16", device, json;
  std::string heatmap, heatmap_samples = "1,2,4,8,16,32,64,128",
                       heatmap_lengths = "256,512,1024,2048,4096,8192,16384";
  AttentionBenchmark common;
  bool explain = false;

  bool wants(const std::string& one) const { return direction == "both" || direction == one; }
};

// The benchmark of one --shape and the other options. Throws UsageError naming the option.
AttentionBenchmark benchmark_of(const AttentionBenchWords& words, const std::string& shape);

// The positive whole numbers of an option such as "1,2,4".
std::vector<std::int64_t> numbers_of(const std::string& list, const std::string& option);

// The first GPU as the driver names it. `specs`: none for a model that gpu_specs does not know.
struct BenchmarkGpu {
  std::string name = "unknown GPU";
  std::optional<GpuSpecs> specs;
};
BenchmarkGpu benchmark_gpu();

// Times the sweep of --heatmap and writes the picture and the figures.
void draw_attention_heatmap(const AttentionBenchWords& words);

}  // namespace hstu
