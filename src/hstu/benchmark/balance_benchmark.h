// How long the attention of each rank takes under each division of a batch: estimated from the work model,
// which needs neither GPUs nor as many ranks, and measured on one GPU, one rank's samples after the other's.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/base/json.h"

namespace hstu {

struct BalanceBenchmarkOptions {
  int ranks = 8;
  std::int64_t samples = 32;     // of a rank
  std::int64_t batches = 20;     // of all ranks
  std::string lengths = "zipf";  // a law of AttentionBenchmark
  std::int64_t longest = 4096;   // items of a sample, each with an action; and `contexts` tokens before them
  std::int64_t contexts = 3;
  std::int64_t layers = 8, heads = 4, head_dim = 256, dim = 1024;
  double tflops = 400;  // of attention, forward and backward: an H100 at these sizes
  std::uint64_t seed = 1;
  bool measure = false;  // time the kernels on the samples of each rank of the first batch, in bf16
};

// {"ranks", ... "ideal_ms": the mean over ranks, "divisions": [{"division": "slices", "nvidia" or "work",
// "slowest_ms": of the slowest rank, the mean over batches, "over_ideal", "worst_over_ideal": of one batch,
// "ranks_ms": of each rank in the first batch, with `measure` "measured_ms": the kernels' there}]}.
Json benchmark_balance(const BalanceBenchmarkOptions& options);

// For people: a row for each division, and the ranks of the first batch.
std::string balance_text(const Json& result);

}  // namespace hstu
