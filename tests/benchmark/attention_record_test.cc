#include "hstu/benchmark/attention_record.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

AttentionTime some_time() {
  AttentionTime time;
  time.burst_ms = 2, time.fastest_ms = 1, time.flops = 1e12, time.bytes = 4.8e9;
  time.route.forward = AttentionKernel::hopper, time.route.backward = AttentionKernel::mma;
  return time;
}

TEST(AttentionRecord, RefersToTheRateOfTheTypeAndTheBandwidthOfTheGpu) {
  const auto h200 = gpu_specs("NVIDIA H200", "9.0");
  const Json bf16 = attention_record("1,2,3,4", "fwd", AttentionType::bf16, some_time(), h200);
  EXPECT_EQ(bf16["kernel"], "hopper");
  EXPECT_DOUBLE_EQ(bf16["burst_tflops"].get<double>(), 500);
  EXPECT_DOUBLE_EQ(bf16["share_of_peak"].get<double>(), 500 / 989.4);
  EXPECT_DOUBLE_EQ(bf16["memory_floor_ms"].get<double>(), 1);
  const Json fp32 = attention_record("1,2,3,4", "bwd", AttentionType::fp32, some_time(), h200);
  EXPECT_EQ(fp32["kernel"], "mma");
  EXPECT_DOUBLE_EQ(fp32["share_of_peak"].get<double>(), 500 / 66.9);
  const auto a100 = gpu_specs("NVIDIA A100-SXM4-80GB", "8.0");
  const Json on_a100 = attention_record("1,2,3,4", "fwd", AttentionType::fp16, some_time(), a100);
  EXPECT_DOUBLE_EQ(on_a100["share_of_peak"].get<double>(), 500.0 / 312);
  EXPECT_DOUBLE_EQ(on_a100["memory_floor_ms"].get<double>(), 4.8e9 / 2.039e12 * 1e3);
}

TEST(AttentionRecord, LeavesOutWhatIsUnknown) {
  AttentionTime time = some_time();
  const Json record = attention_record("1,2,3,4", "fwd", AttentionType::bf16, time, {});
  EXPECT_TRUE(record.contains("burst_tflops"));
  for (const char* key : {"share_of_peak", "memory_floor_ms", "sustained_ms", "sustained_tflops"})
    EXPECT_FALSE(record.contains(key)) << key;
  time.sustained_ms = 4;
  EXPECT_DOUBLE_EQ(
      attention_record("", "fwd", AttentionType::bf16, time, {})["sustained_tflops"].get<double>(), 250);
}

}  // namespace
}  // namespace hstu
