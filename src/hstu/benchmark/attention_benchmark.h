// Timing of attention on a GPU.
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
  std::string lengths = "fixed";         // fixed, uniform, normal, zipf or lognormal
  std::vector<std::int64_t> of_samples;  // lengths of these samples, in place of a law
  AttentionType type = AttentionType::bf16;
  ScoreFunction score = ScoreFunction::silu;
  AttentionChoice kernels = AttentionChoice::automatic;
  AttentionMask mask;
  std::int32_t contexts = 0, targets = 0;  // of each sample
  bool deterministic = false;
  double dropout = 0;                             // rate, of the weights of pairs
  bool position_bias = false, time_bias = false;  // a relative bias, and backward the gradients of its tables
  std::optional<AttentionDevice> device;  // use the kernels of such a GPU (route.h); none: those of this GPU
  bool sustained = true;                  // false: the burst alone, for sweeps over many shapes
  int warmup = 5, timed = 20;             // launches of the burst: not measured, and measured
  double quantile = 0.5;                  // of the measured ones: what burst_ms is
  std::uint64_t seed = 1;
};

// The batch of the benchmark without its memory: q, k and v side by side in rows of 4 H D. The tables of a
// bias are at an address that must not be read.
AttentionProblem benchmark_problem(const AttentionBenchmark& benchmark);

// One direction of one benchmark. Burst: 0.25 s idle, `warmup` launches, then the quantile of `timed`.
// Sustained: the mean of one second without a pause. A launch is everything that the operation does, its
// schedule and the rounding of dQ included.
struct AttentionTime {
  double burst_ms = 0, fastest_ms = 0;
  std::optional<double> sustained_ms;
  std::vector<double> percentiles_ms;  // of the burst: 1, 10, 20, 50 and 100
  double flops = 0;                    // by the convention of attention_flops
  double bytes = 0;                    // read and written at least once
  AttentionRoute route;
};
// Both throw OutOfMemory (device/memory_pool.h) if the batch does not fit into the device.
AttentionTime time_attention_forward(const AttentionBenchmark& benchmark);
AttentionTime time_attention_backward(const AttentionBenchmark& benchmark);

// The lengths of the benchmark's samples, 1 to `length`. uniform: each alike; zipf: exponent 1.2, unbounded,
// cut at `length`; normal, lognormal: mean length / 2, standard deviation length / 4, cut at 1 and `length`.
std::vector<std::int64_t> attention_lengths(const AttentionBenchmark& benchmark);

// Floating-point operations of the forward pass: 4 D for each head and each pair of query and key that the
// mask lets through, counted by the convention of publications (conventional_pairs in
// attention/visible_pairs.h). The backward pass is 2.5 times that.
double attention_flops(const AttentionBenchmark& benchmark);

}  // namespace hstu
