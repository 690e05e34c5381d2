#include "hstu/run/throughput.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

StepResult step_with(std::int64_t uvqk) {
  StepResult result;
  result.samples = 4;
  result.tokens = 100;
  result.flops.model.uvqk = 2 * uvqk;
  result.flops.computed.uvqk = uvqk;
  result.stages = StageTimes{.forward_ms = 3};
  result.memory_peak = 3 << 20;
  return result;
}

TEST(Throughput, IsThatOfTheStepsSinceTheLastLine) {
  Throughput throughput(2e12);
  throughput.add(step_with(1'000'000'000), 40, 10);
  StepResult untimed = step_with(3'000'000'000);
  untimed.stages.reset();
  throughput.add(untimed, 30, 20);
  Json line;
  throughput.move_to(line, 160);
  EXPECT_EQ(line.at("step_ms"), 35);
  EXPECT_EQ(line.at("data_wait_ms"), 15);
  EXPECT_EQ(line.at("forward_ms"), 3);
  EXPECT_EQ(line.at("memory_peak_mib"), 3);
  EXPECT_DOUBLE_EQ(line.at("samples_per_s").get<double>(), 80);
  EXPECT_DOUBLE_EQ(line.at("tokens_per_s").get<double>(), 2000);
  EXPECT_DOUBLE_EQ(line.at("left_s").get<double>(), 2);
  // 8 and 4 GFLOP forward, three times that with the backward pass, in 0.1 s, of 2 TFLOP/s.
  EXPECT_DOUBLE_EQ(line.at("tflops").get<double>(), 0.24);
  EXPECT_DOUBLE_EQ(line.at("mfu").get<double>(), 0.12);
  EXPECT_DOUBLE_EQ(line.at("computed_tflops").get<double>(), 0.12);
  EXPECT_DOUBLE_EQ(line.at("computed_mfu").get<double>(), 0.06);
  throughput.add(step_with(1'000'000'000), 50, 0);
  throughput.move_to(line, 160);
  EXPECT_EQ(line.at("step_ms"), 50);
  EXPECT_DOUBLE_EQ(line.at("tflops").get<double>(), 0.12);
}

TEST(Throughput, HasTheTimesOfDivisionsAmongRanks) {
  Throughput throughput(std::nullopt);
  StepResult result = step_with(1);
  Json line;
  throughput.add(result, 50, 0);
  throughput.move_to(line, 0);
  EXPECT_FALSE(line.contains("division_ms"));
  result.division = {.work = {1, 2}, .work_of_slices = {2, 1}, .ms = 3, .exposed_ms = 1};
  throughput.add(result, 50, 0);
  result.division.ms = 1, result.division.exposed_ms = 0;
  throughput.add(result, 50, 0);
  throughput.move_to(line, 0);
  EXPECT_EQ(line.at("division_ms"), 2);
  EXPECT_EQ(line.at("division_exposed_ms"), 0.5);
}

TEST(Throughput, HasNoUtilisationWithoutAPublishedPeak) {
  Throughput throughput(std::nullopt);
  throughput.add(step_with(1'000'000'000), 50, 0);
  Json line;
  throughput.move_to(line, 0);
  EXPECT_TRUE(line.contains("tflops"));
  EXPECT_FALSE(line.contains("mfu"));
  EXPECT_FALSE(line.contains("computed_mfu"));
}

TEST(Throughput, HasNoRateOfAModelThatDoesNotCount) {
  Throughput throughput(1e12);
  throughput.add(step_with(0), 50, 0);
  Json line;
  throughput.move_to(line, 0);
  EXPECT_FALSE(line.contains("tflops"));
  EXPECT_FALSE(line.contains("mfu"));
  EXPECT_EQ(line.at("step_ms"), 50);
}

}  // namespace
}  // namespace hstu
