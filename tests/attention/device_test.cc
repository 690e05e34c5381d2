// Kernels against the CPU. They skip where there is no GPU.
#ifdef HSTU_WITH_CUDA

#include "attention/device_case.h"

namespace hstu {
namespace {

void run_case(const DeviceCase& c) {
  const auto run = [&]<typename T>() {
    DeviceRun<T> one(c);
    one.run();
    if (::testing::Test::HasFatalFailure()) return;
    one.compare();
  };
  if (c.type == AttentionType::bf16)
    run.template operator()<__nv_bfloat16>();
  else if (c.type == AttentionType::fp16)
    run.template operator()<__half>();
  else
    run.template operator()<float>();
}

class AttentionOnGpu : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  }
};

const std::vector<int> kLengths{1, 2, 0, 63, 64, 65, 127, 7, 128, 129, 0, 191, 193, 255, 257, 300};

TEST_P(AttentionOnGpu, CausalOfAnyLength) {
  run_case({.name = "causal", .lengths = kLengths, .head_dim = GetParam()});
}

TEST_P(AttentionOnGpu, Half) {
  run_case({.name = "fp16", .lengths = kLengths, .head_dim = GetParam(), .type = AttentionType::fp16});
}

TEST_P(AttentionOnGpu, FullAndLocalWindows) {
  for (const AttentionMask mask :
       {AttentionMask{-1, -1}, {0, 0}, {1, 0}, {63, 0}, {64, 0}, {100, 50}, {-1, 20}, {70, -1}}) {
    run_case({.name = fmt::format("window {} {}", mask.left, mask.right),
              .lengths = {1, 64, 130, 333},
              .head_dim = GetParam(),
              .mask = mask});
  }
}

TEST_P(AttentionOnGpu, ContextsAndTargets) {
  for (const AttentionMask mask :
       {AttentionMask{-1, 0, 1}, {-1, 0, 3}, {-1, 0, 16}, {50, 0, 7}, {-1, -1, 5}}) {
    run_case({.name = fmt::format("contexts and targets {} {} {}", mask.left, mask.right, mask.target_group),
              .lengths = {1, 20, 64, 0, 130, 200, 333, 257, 129},
              .head_dim = GetParam(),
              .mask = mask,
              .contexts = {1, 3, 0, 5, 70, 200, 6, 129, 8},
              .targets = {1, 4, 64, 2, 0, 100, 130, 10, 300}});
  }
}

TEST_P(AttentionOnGpu, ScalesPerSample) {
  run_case({.name = "scales", .lengths = {5, 100, 256}, .head_dim = GetParam(), .per_sample_scale = true});
}

TEST_P(AttentionOnGpu, LargeSmallAndNegativeFactors) {
  run_case({.name = "large", .lengths = {65, 200}, .head_dim = GetParam(), .magnitude = 30});
  run_case({.name = "denormal", .lengths = {65, 200}, .head_dim = GetParam(), .magnitude = 1e-20});
  run_case({.name = "negative alpha", .lengths = {65, 200}, .head_dim = GetParam(), .alpha = -0.37f});
}

TEST_P(AttentionOnGpu, NeighboursThatHoldNanDoNotLeak) {
  run_case({.name = "poison",
            .lengths = {33, 64, 1, 100, 31, 200, 90, 5},
            .head_dim = GetParam(),
            .poisoned = {1, 3, 5, 7}});
}

TEST_P(AttentionOnGpu, DeterministicBackwardRepeatsBitForBit) {
  const DeviceCase c{
      .name = "deterministic", .lengths = {300, 64, 200}, .head_dim = GetParam(), .deterministic = true};
  DeviceRun<__nv_bfloat16> first(c), second(c);
  first.run();
  second.run();
  ASSERT_EQ(first.outputs().size(), second.outputs().size());
  const std::size_t bytes = first.outputs().size() * sizeof(__nv_bfloat16);
  EXPECT_EQ(std::memcmp(first.outputs().data(), second.outputs().data(), bytes), 0);
  first.compare();
}

TEST_P(AttentionOnGpu, NothingToDo) {
  run_case({.name = "empty samples", .lengths = {0, 0, 0}, .head_dim = GetParam()});
  run_case({.name = "no samples", .lengths = {}, .head_dim = GetParam()});
}

INSTANTIATE_TEST_SUITE_P(HeadSize, AttentionOnGpu, ::testing::Values(32, 64, 128, 256),
                         [](const auto& head_dim) { return "D" + std::to_string(head_dim.param); });

TEST(AttentionPlainOnGpu, SinglePrecisionAndOddHeadSizes) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  for (const int head_dim : {1, 40, 128, 200}) {
    for (const AttentionType type : {AttentionType::fp32, AttentionType::bf16}) {
      run_case({.name = "plain",
                .lengths = {1, 20, 0, 64, 130},
                .head_dim = head_dim,
                .type = head_dim == 128 ? AttentionType::fp32 : type,
                .mask = {40, 0, 3},
                .contexts = {1, 3, 0, 5, 20},
                .targets = {1, 4, 0, 20, 17}});
    }
  }
}

}  // namespace
}  // namespace hstu

#endif
