// The parts of `hstu bench attention`.
#pragma once

#include <string>
#include <vector>

#include "hstu/benchmark/attention_benchmark.h"
#include "hstu/benchmark/attention_heatmap.h"

namespace hstu {

struct AttentionBenchWords {
  std::vector<std::string> shapes{"32,4096,4,128"};
  std::string mask = "causal", direction = "both", type = "bf16", score = "silu", kernels = "auto", device,
              json, bias;
  std::string heatmap, heatmap_samples = "1,2,4,8,16,32,64,128",
                       heatmap_lengths = "64,128,256,512,1024,2048,4096,8192,16384";
  AttentionBenchmark common;
  bool explain = false;

  bool wants(const std::string& one) const { return direction == "both" || direction == one; }
};

// The benchmark of one --shape and the other options. Throws UsageError naming the option.
AttentionBenchmark benchmark_of(const AttentionBenchWords& words, const std::string& shape);

// What --heatmap and its options ask for. Throws UsageError naming the option.
AttentionHeatmap heatmap_of(const AttentionBenchWords& words);

}  // namespace hstu
