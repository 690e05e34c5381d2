#include "hstu/benchmark/stream_benchmark.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

// stream_ids compares the hits with the simulation after every step.
TEST(StreamBenchmark, TheTableHitsWhatTheSimulationHitsInFlatMemory) {
  const Json result = stream_ids({.events = 2'000'000,
                                  .step = 10'000,
                                  .ids = 200'000,
                                  .capacity = 20'000,
                                  .dim = 1,
                                  .power = 0.8,
                                  .seed = 3});
  EXPECT_EQ(result.at("hits"), result.at("simulated_hits"));
  EXPECT_GT(result.at("hit_rate"), 0.1);
  EXPECT_LT(result.at("hit_rate"), 0.9);
  EXPECT_GT(result.at("distinct"), 150'000);
  EXPECT_EQ(result.at("rows"), 20'000);
  EXPECT_GT(result.at("evicted"), 100'000);
  EXPECT_EQ(result.at("table_mib").size(), 10u);
  EXPECT_EQ(result.at("table_mib")[1], result.at("table_mib")[9]) << "a full table does not grow";
}

}  // namespace
}  // namespace hstu
