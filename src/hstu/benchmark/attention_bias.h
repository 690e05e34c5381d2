// The relative bias of an attention benchmark: tables, and times as of real histories.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/benchmark/attention_benchmark.h"

namespace hstu {

// In host memory; what the benchmark does not ask for is empty.
struct AttentionBenchmarkBias {
  std::vector<float> position, time;               // (1, 2 length - 1), (1, thresholds + 1)
  std::vector<std::int64_t> thresholds;            // 128, growing by exp(0.301)
  std::vector<std::int64_t> key_time, query_time;  // (T) seconds; a query has the time of the next event
};
AttentionBenchmarkBias attention_bias(const AttentionBenchmark& benchmark);

}  // namespace hstu
