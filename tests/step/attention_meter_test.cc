#include "hstu/step/attention_meter.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

StageTime range_of(const char* name, int depth, std::ptrdiff_t outer, double ms) {
  StageTime range;
  range.name = name, range.depth = depth, range.outer = outer, range.end_ms = ms;
  return range;
}

// Two layers in two parts: forward 1 and 2 ms, backward 3 (of layer 0) and 4 ms, twice each.
std::vector<StageTime> two_parts() {
  std::vector<StageTime> ranges;
  for (int part = 0; part < 2; ++part) {
    const std::ptrdiff_t forward = std::ssize(ranges);
    ranges.push_back(range_of("forward", 0, -1, 9));
    ranges.push_back(range_of("attention", 1, forward, 1));
    ranges.push_back(range_of("gate", 1, forward, 7));
    ranges.push_back(range_of("attention", 1, forward, 2));
    const std::ptrdiff_t backward = std::ssize(ranges);
    ranges.push_back(range_of("backward", 0, -1, 9));
    ranges.push_back(range_of("attention", 1, backward, 4));
    ranges.push_back(range_of("attention", 1, backward, 3));
  }
  return ranges;
}

TEST(AttentionMeter, LayersHaveTheirTimesAndWhatTheyComputed) {
  StackFlops flops;
  flops.model.attention = 8'000'000'000, flops.computed.attention = 6'000'000'000;
  const Json json = attention_by_layer(two_parts(), 2, flops, 1e13);
  const Json& layers = json.at("layers");
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].at("forward_ms"), 2.0);
  EXPECT_EQ(layers[1].at("forward_ms"), 4.0);
  EXPECT_EQ(layers[0].at("backward_ms"), 6.0) << "backward begins with the last layer";
  EXPECT_EQ(layers[1].at("backward_ms"), 8.0);
  EXPECT_DOUBLE_EQ(layers[0].at("forward_tflops").get<double>(), 2.0);  // 4 GFLOP in 2 ms
  EXPECT_DOUBLE_EQ(layers[1].at("forward_tflops").get<double>(), 0.5);  // 2 GFLOP in 4 ms
  EXPECT_DOUBLE_EQ(layers[1].at("backward_tflops").get<double>(), 5.0 / 8);
  EXPECT_DOUBLE_EQ(layers[0].at("forward_mfu").get<double>(), 0.2);
  EXPECT_FALSE(attention_by_layer(two_parts(), 2, flops, {}).at("layers")[0].contains("forward_mfu"));
}

TEST(AttentionMeter, WhatIsNotOfTheseLayersIsNotReported) {
  StackFlops flops;
  EXPECT_TRUE(attention_by_layer(two_parts(), 3, flops, {}).is_null());
  EXPECT_TRUE(attention_by_layer({}, 2, flops, {}).is_null());
  std::vector<StageTime> again = two_parts();
  again.push_back(range_of("attention", 1, 4, 1));  // a layer that is computed again
  EXPECT_FALSE(attention_by_layer(again, 2, flops, {}).at("layers")[0].contains("backward_ms"));
  const AttentionMeter off(0, 2, {}), third(3, 2, {});
  EXPECT_FALSE(off.measures(3));
  EXPECT_TRUE(third.measures(6));
  EXPECT_FALSE(third.measures(7));
}

}  // namespace
}  // namespace hstu
