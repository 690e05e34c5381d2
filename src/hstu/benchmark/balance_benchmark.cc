#include "hstu/benchmark/balance_benchmark.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "hstu/base/text.h"
#include "hstu/benchmark/attention_benchmark.h"
#include "hstu/experiment/division.h"

namespace hstu {
namespace {

constexpr std::pair<const char*, Balance> kDivisions[] = {
    {"slices", Balance::none}, {"nvidia", Balance::nvidia}, {"work", Balance::work}};

// Tokens of the samples of one batch of all ranks.
std::vector<std::int64_t> tokens_of(const BalanceBenchmarkOptions& o, std::int64_t batch) {
  AttentionBenchmark lengths;
  lengths.samples = o.samples * o.ranks, lengths.length = o.longest, lengths.lengths = o.lengths;
  lengths.seed = o.seed + static_cast<std::uint64_t>(batch);
  std::vector<std::int64_t> tokens = attention_lengths(lengths);
  for (std::int64_t& n : tokens) n = 2 * n + o.contexts;
  return tokens;
}

// Milliseconds of attention of each rank.
std::vector<double> times_of(const BalanceBenchmarkOptions& o, const HstuLayerConfig& layer,
                             const std::vector<std::int64_t>& tokens, const Partition& parts) {
  std::vector<double> times;
  for (const std::vector<std::int32_t>& part : parts) {
    LayerFlops flops;
    for (const std::int32_t sample : part) {
      const std::int64_t n = tokens[static_cast<std::size_t>(sample)];
      flops.attention += layer_flops(layer, causal_mask(n), static_cast<std::int32_t>(n)).attention;
    }
    times.push_back(static_cast<double>(o.layers * flops.step()) / o.tflops * 1e-9);
  }
  return times;
}

// Milliseconds of the attention kernels, forward and backward, on the samples of each rank.
std::vector<double> measured_times(const BalanceBenchmarkOptions& o, const std::vector<std::int64_t>& tokens,
                                   const Partition& parts) {
  std::vector<double> times;
  for (const std::vector<std::int32_t>& part : parts) {
    if (part.empty()) {
      times.push_back(0);
      continue;
    }
    AttentionBenchmark b;
    b.samples = static_cast<std::int64_t>(part.size()), b.heads = o.heads, b.head_dim = o.head_dim;
    b.sustained = false;
    for (const std::int32_t sample : part) b.of_samples.push_back(tokens[static_cast<std::size_t>(sample)]);
    b.length = *std::max_element(b.of_samples.begin(), b.of_samples.end());
    times.push_back(static_cast<double>(o.layers) *
                    (time_attention_forward(b).burst_ms + time_attention_backward(b).burst_ms));
  }
  return times;
}

}  // namespace

Json benchmark_balance(const BalanceBenchmarkOptions& o) {
  HstuStackConfig stack;
  stack.layers = o.layers;
  stack.layer = {.dim = o.dim, .heads = o.heads, .head_dim = o.head_dim, .gate = ops::GateForm::product};
  Json divisions = Json::array();
  double ideal = 0;
  for (const auto& [name, balance] : kDivisions) {
    double slowest = 0, mean = 0, worst = 1;
    Json first, measured;
    for (std::int64_t batch = 0; batch < o.batches; ++batch) {
      const std::vector<std::int64_t> tokens = tokens_of(o, batch);
      const Partition parts = divide_batch(balance, stack, tokens, o.ranks).parts;
      const std::vector<double> times = times_of(o, stack.layer, tokens, parts);
      const double most = *std::max_element(times.begin(), times.end());
      const double even = std::accumulate(times.begin(), times.end(), 0.0) / o.ranks;
      slowest += most, mean += even, worst = std::max(worst, most / even);
      if (batch == 0) first = times;
      if (batch == 0 && o.measure) measured = measured_times(o, tokens, parts);
    }
    ideal = mean / static_cast<double>(o.batches);
    divisions.push_back({{"division", name},
                         {"slowest_ms", slowest / static_cast<double>(o.batches)},
                         {"over_ideal", slowest / mean},
                         {"worst_over_ideal", worst},
                         {"ranks_ms", first}});
    if (o.measure) divisions.back()["measured_ms"] = measured;
  }
  return {{"ranks", o.ranks},     {"samples", o.samples}, {"batches", o.batches}, {"lengths", o.lengths},
          {"longest", o.longest}, {"tflops", o.tflops},   {"ideal_ms", ideal},    {"divisions", divisions}};
}

std::string balance_text(const Json& result) {
  std::vector<std::vector<std::string>> rows{{"division", "slowest rank ms", "over ideal", "worst batch"}};
  std::vector<std::vector<std::string>> ranks{{"rank"}};
  const auto digits = [](const Json& value) { return fmt::format("{:.3f}", value.get<double>()); };
  for (const Json& division : result.at("divisions")) {
    rows.push_back({division.at("division").get<std::string>(), digits(division.at("slowest_ms")),
                    digits(division.at("over_ideal")), digits(division.at("worst_over_ideal"))});
    const std::string name = division.at("division").get<std::string>();
    ranks[0].push_back(name + " ms");
    if (division.contains("measured_ms")) ranks[0].push_back(name + " measured");
  }
  rows.push_back({"ideal", digits(result.at("ideal_ms")), "1.000", "1.000"});
  for (std::size_t rank = 0; rank < result.at("ranks").get<std::size_t>(); ++rank) {
    std::vector<std::string> row{std::to_string(rank)};
    for (const Json& division : result.at("divisions")) {
      row.push_back(digits(division.at("ranks_ms").at(rank)));
      if (division.contains("measured_ms")) row.push_back(digits(division.at("measured_ms").at(rank)));
    }
    ranks.push_back(std::move(row));
  }
  return table(rows) + "\nthe ranks of the first batch\n" + table(ranks);
}

}  // namespace hstu
