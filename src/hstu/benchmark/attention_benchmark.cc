#include "hstu/benchmark/attention_benchmark.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "hstu/attention/visible_pairs.h"
#include "hstu/base/error.h"

namespace hstu {
namespace {

// numpy's sampler for the unbounded Zipf law (rejection; Devroye 1986).
std::int64_t zipf(std::mt19937_64& random, double a) {
  std::uniform_real_distribution<double> uniform(0, 1);
  const double power = std::pow(2.0, a - 1);
  while (true) {
    const double u = 1 - uniform(random), v = uniform(random);
    const double x = std::floor(std::pow(u, -1 / (a - 1)));
    if (x > 9e18 || x < 1) continue;
    const double t = std::pow(1 + 1 / x, a - 1);
    if (v * x * (t - 1) / (power - 1) <= t / power) return static_cast<std::int64_t>(x);
  }
}

}  // namespace

std::vector<std::int64_t> attention_lengths(const AttentionBenchmark& b) {
  if (!b.of_samples.empty()) return b.of_samples;
  std::mt19937_64 random(b.seed);
  const double mean = static_cast<double>(b.length) / 2, ratio = 0.5;
  const double variance = std::log(1 + ratio * ratio);
  std::lognormal_distribution<double> lognormal(std::log(mean) - variance / 2, std::sqrt(variance));
  std::normal_distribution<double> normal(mean, mean * ratio);
  std::uniform_int_distribution<std::int64_t> uniform(1, b.length);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(b.samples), b.length);
  for (std::int64_t& n : lengths) {
    if (b.lengths == "zipf")
      n = zipf(random, 1.2);
    else if (b.lengths == "lognormal")
      n = static_cast<std::int64_t>(std::nearbyint(lognormal(random)));
    else if (b.lengths == "normal")
      n = static_cast<std::int64_t>(std::nearbyint(normal(random)));
    else if (b.lengths == "uniform")
      n = uniform(random);
    else if (b.lengths != "fixed")
      fail_usage("lengths: expected fixed, uniform, normal, zipf or lognormal, found '{}'", b.lengths);
    n = std::clamp<std::int64_t>(n, 1, b.length);
  }
  return lengths;
}

AttentionProblem benchmark_problem(const AttentionBenchmark& b) {
  AttentionProblem p;
  p.type = b.type, p.samples = b.samples, p.heads = b.heads, p.head_dim = b.head_dim;
  for (const std::int64_t n : attention_lengths(b)) p.tokens += n;
  p.longest = b.length, p.mask = b.mask, p.deterministic = b.deterministic;
  p.score = b.score, p.kernels = b.kernels;
  p.alpha = 1 / std::sqrt(static_cast<double>(b.head_dim)), p.scale = 1 / static_cast<double>(b.length);
  p.q = p.k = p.v = {nullptr, 4 * b.heads * b.head_dim, b.head_dim};
  static const float table = 0;
  static float log_sum = 0;
  if (b.score == ScoreFunction::softmax) p.log_sums = &log_sum;
  p.dropout.rate = b.dropout;
  static const std::int64_t time = 0;
  if (b.position_bias) p.bias.position_table = &table, p.bias.positions = b.length;
  if (b.time_bias) {
    p.bias.time_table = &table, p.bias.query_time = p.bias.key_time = p.bias.thresholds = &time;
    p.bias.buckets = 128;
  }
  return p;
}

double attention_flops(const AttentionBenchmark& b) {
  double pairs = 0;
  for (const std::int64_t n : attention_lengths(b)) {
    pairs += conventional_pairs(sample_mask(static_cast<std::int32_t>(n), b.contexts, b.targets,
                                            b.mask.target_group, b.mask.left, b.mask.right));
  }
  return 4 * static_cast<double>(b.heads * b.head_dim) * pairs;
}

}  // namespace hstu
