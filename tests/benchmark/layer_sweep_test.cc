#include "hstu/benchmark/layer_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/benchmark/balance_benchmark.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LayerSweep, DrawsEveryPointBesideWhatWasPublished) {
  const Json result = Json::parse(R"({"layer": {"samples": 32, "heads": 4, "head_dim": 256}, "points": [
      {"variant": "mma attention", "tokens": 4096, "tflops": 345.6},
      {"variant": "fastest attention", "tokens": 4096, "left_out": "more memory than the device has free"}]})");
  const std::string svg = layer_sweep_svg(result);
  EXPECT_THAT(svg, HasSubstr("4,096: mma attention"));
  EXPECT_THAT(svg, HasSubstr(">345.6<"));
  EXPECT_THAT(svg, HasSubstr(">left out<"));
  EXPECT_THAT(svg, HasSubstr("412.5 published, H100"));
  EXPECT_THAT(svg, Not(HasSubstr("476.5"))) << "8,192 tokens were not timed";
}

TEST(BalanceBenchmark, BalancedRanksAreCloserToTheIdeal) {
  BalanceBenchmarkOptions o;
  o.ranks = 4, o.samples = 16, o.batches = 3, o.longest = 512;
  const Json result = benchmark_balance(o);
  const auto over_ideal = [&](std::size_t i) {
    return result.at("divisions").at(i).at("over_ideal").get<double>();
  };
  EXPECT_EQ(result.at("divisions").at(0).at("division"), "slices");
  EXPECT_EQ(result.at("divisions").at(2).at("ranks_ms").size(), 4u);
  EXPECT_GT(over_ideal(0), 1.1);
  EXPECT_LT(over_ideal(1), over_ideal(0));
  EXPECT_LT(over_ideal(2), over_ideal(0));
  EXPECT_GE(over_ideal(2), 1);
  // The same batch takes as long in any division, together.
  for (std::size_t i = 0; i < 2; ++i) {
    double sums[2] = {};
    for (std::size_t r = 0; r < 4; ++r) {
      sums[0] += result.at("divisions").at(i).at("ranks_ms").at(r).get<double>();
      sums[1] += result.at("divisions").at(2).at("ranks_ms").at(r).get<double>();
    }
    EXPECT_NEAR(sums[0], sums[1], 1e-9 * sums[0]);
  }
  EXPECT_THAT(balance_text(result), HasSubstr("ideal"));
}

}  // namespace
}  // namespace hstu
