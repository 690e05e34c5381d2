// Timing over a grid of batch sizes and lengths: which cells are timed, and which are left out and why.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hstu/benchmark/attention_benchmark.h"

namespace hstu {

struct AttentionSweep {
  AttentionBenchmark shape;  // of every cell but for samples and length
  std::vector<std::int64_t> samples{1, 2, 4, 8, 16, 32, 64, 128};
  std::vector<std::int64_t> lengths{64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  std::int64_t most_tokens = std::int64_t{1} << 19;  // cells of more samples x length are left out
  bool forward = true, backward = true;
};

struct AttentionSweepCell {
  std::string direction;  // fwd, bwd, or both: their sum
  std::int64_t samples = 0, length = 0;
  std::optional<AttentionTime> time;  // none: left out
  std::string why;                    // it was left out
};

using AttentionTimer = std::function<AttentionTime(const AttentionBenchmark&)>;

// Every cell of each direction, forward first, row by row of equal samples; where both are timed, then their
// sums. `report` is called after each
// cell. A cell whose timer throws OutOfMemory is left out; other failures end the sweep.
std::vector<AttentionSweepCell> sweep_attention(const AttentionSweep& sweep, const AttentionTimer& forward,
                                                const AttentionTimer& backward,
                                                const std::function<void(const AttentionSweepCell&)>& report);

}  // namespace hstu
