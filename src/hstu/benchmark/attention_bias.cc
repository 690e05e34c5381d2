#include "hstu/benchmark/attention_bias.h"

#include <cmath>
#include <random>

namespace hstu {
namespace {

// Sessions of a few minutes, hours to days apart: nine of ten events follow within a minute, the others after
// an hour to ten days, evenly by the logarithm.
std::int64_t gap(std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0, 1);
  if (uniform(random) < 0.9) return static_cast<std::int64_t>(60 * uniform(random));
  return static_cast<std::int64_t>(3600 * std::pow(240, uniform(random)));
}

}  // namespace

AttentionBenchmarkBias attention_bias(const AttentionBenchmark& b) {
  constexpr int kThresholds = 128;
  constexpr double kGrowth = 0.301;  // of the logarithm, from one threshold to the next
  AttentionBenchmarkBias bias;
  std::mt19937_64 random(b.seed);
  std::normal_distribution<float> normal(0, 0.02f);
  if (b.position_bias) {
    bias.position.resize(static_cast<std::size_t>(2 * b.length - 1));
    for (float& x : bias.position) x = normal(random);
  }
  if (!b.time_bias) return bias;
  bias.time.resize(kThresholds + 1);
  for (float& x : bias.time) x = normal(random);
  for (int i = 1; i <= kThresholds; ++i)
    bias.thresholds.push_back(static_cast<std::int64_t>(std::ceil(std::exp(kGrowth * i))));
  for (const std::int64_t length : attention_lengths(b)) {
    std::int64_t now = 1'000'000'000;
    for (std::int64_t i = 0; i < length; ++i) {
      bias.key_time.push_back(now);
      now += gap(random);
      bias.query_time.push_back(now);
    }
  }
  return bias;
}

}  // namespace hstu
