// The parts of `hstu bench attention`: its words, and what is made of them.
#pragma once

#include <string>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/benchmark/attention_benchmark.h"

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

// The benchmark of one --shape under the other words. Throws UsageError naming the option.
AttentionBenchmark benchmark_of(const AttentionBenchWords& words, const std::string& shape);

// "1,2,4" as the whole numbers of `option`, all positive.
std::vector<std::int64_t> numbers_of(const std::string& list, const std::string& option);

// What --json holds of one direction ("fwd" or "bwd") of a shape.
Json attention_record(const std::string& shape, const std::string& direction, const AttentionTime& time);

// Times the sweep of --heatmap and writes the picture and the figures.
void draw_attention_heatmap(const AttentionBenchWords& words);

}  // namespace hstu
