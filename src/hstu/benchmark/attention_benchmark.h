// Timing of attention on the GPU of this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hstu/attention/problem.h"
#include "hstu/attention/route.h"

namespace hstu {

struct AttentionBenchmark {
  std::int64_t samples = 32, length = 4096, heads = 4, head_dim = 128;  // length: of the longest sample
  std::string lengths = "fixed";                                        // fixed, zipf or lognormal
  AttentionType type = AttentionType::bf16;
  AttentionMask mask;
  std::int32_t contexts = 0, targets = 0;  // of each sample
  bool deterministic = false;
  std::optional<AttentionDevice> device;  // with the kernels that such a GPU takes (route.h); none: this one
  bool sustained = true;                  // false: the burst alone, for sweeps of many shapes
  std::uint64_t seed = 1;
};

// The benchmark's batch without its memory: q, k and v side by side in rows of 4 H D.
AttentionProblem benchmark_problem(const AttentionBenchmark& benchmark);

// One direction of one benchmark. Burst: idle for 0.25 s, then 5 launches, then the median of 20. Sustained:
// the mean of one second without a pause. A launch is everything the operation does, its schedule and the
// rounding of dQ included.
struct AttentionTime {
  double burst_ms = 0, fastest_ms = 0;
  std::optional<double> sustained_ms;
  double flops = 0;  // as the field counts (attention_flops)
  double bytes = 0;  // read and written at least once
  AttentionRoute route;
};
// Both throw OutOfMemory (device/memory_pool.h) when the batch does not fit into the device.
AttentionTime time_attention_forward(const AttentionBenchmark& benchmark);
AttentionTime time_attention_backward(const AttentionBenchmark& benchmark);

// The benchmark's sample lengths, 1 to `length`. zipf: exponent 1.2, unbounded, cut at `length`; lognormal:
// mean length / 2, standard deviation length / 4, cut likewise.
std::vector<std::int64_t> attention_lengths(const AttentionBenchmark& benchmark);

// Floating-point operations of the forward pass by the field's convention: per head 4 D for each pair of
// query and key, where causal history counts as half of its square. The backward pass is 2.5 times that.
double attention_flops(const AttentionBenchmark& benchmark);

}  // namespace hstu
