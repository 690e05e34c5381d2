// Kernels against the CPU form. The tests skip on machines without a GPU.
#ifdef HSTU_WITH_CUDA

#include <cstring>

#include "attention/device_kernels.h"

namespace hstu {
namespace {

void run_case(const DeviceCase& c) {
  if (c.type == AttentionType::bf16)
    run_and_compare<__nv_bfloat16>(c);
  else if (c.type == AttentionType::fp16)
    run_and_compare<__half>(c);
  else
    run_and_compare<float>(c);
}

class AttentionOnGpu : public OnGpu {
 protected:
  static void run(const DeviceCase& c) { run_case(with_kernels(c)); }
};

const std::vector<int> kLengths{1, 2, 0, 63, 64, 65, 127, 7, 128, 129, 0, 191, 193, 255, 257, 300};
// On average long enough for tiles that two blocks share.
const std::vector<int> kLonger{255, 256, 257, 1, 320, 511, 512, 513, 0, 639, 769};

TEST_P(AttentionOnGpu, CausalOfAnyLength) {
  run({.name = "causal", .lengths = kLengths});
  run({.name = "causal, longer", .lengths = kLonger});
}

TEST_P(AttentionOnGpu, Half) {
  run({.name = "fp16", .lengths = kLengths, .type = AttentionType::fp16});
  run({.name = "fp16, longer", .lengths = kLonger, .type = AttentionType::fp16});
}

TEST_P(AttentionOnGpu, FullAndLocalWindows) {
  for (const AttentionMask mask :
       {AttentionMask{-1, -1}, {0, 0}, {1, 0}, {63, 0}, {64, 0}, {100, 50}, {-1, 20}, {70, -1}}) {
    run({.name = fmt::format("window {} {}", mask.left, mask.right),
         .lengths = {1, 64, 130, 333},
         .mask = mask});
    run({.name = fmt::format("window {} {}, longer", mask.left, mask.right),
         .lengths = {520, 257, 333},
         .mask = mask});
  }
}

TEST_P(AttentionOnGpu, ContextsAndTargets) {
  for (const AttentionMask mask :
       {AttentionMask{-1, 0, 1}, {-1, 0, 3}, {-1, 0, 16}, {50, 0, 7}, {-1, -1, 5}}) {
    run({.name = fmt::format("contexts and targets {} {} {}", mask.left, mask.right, mask.target_group),
         .lengths = {1, 20, 64, 0, 130, 200, 333, 257, 129},
         .mask = mask,
         .contexts = {1, 3, 0, 5, 70, 200, 6, 129, 8},
         .targets = {1, 4, 64, 2, 0, 100, 130, 10, 300}});
    run({.name =
             fmt::format("contexts and targets {} {} {}, longer", mask.left, mask.right, mask.target_group),
         .lengths = {640, 20, 333, 512, 300},
         .mask = mask,
         .contexts = {3, 1, 129, 5, 260},
         .targets = {100, 4, 10, 280, 0}});
  }
}

TEST_P(AttentionOnGpu, ScalesPerSample) {
  run({.name = "scales", .lengths = {30, 41, 100, 256}, .per_sample_scale = true});
  run({.name = "scales, longer", .lengths = {300, 513}, .per_sample_scale = true});
}

TEST_P(AttentionOnGpu, LargeSmallAndNegativeFactors) {
  for (const std::vector<int>& lengths : {std::vector<int>{65, 200}, {65, 500}}) {
    run({.name = "large", .lengths = lengths, .magnitude = 30});
    run({.name = "denormal", .lengths = lengths, .magnitude = 1e-20});
    run({.name = "negative alpha", .lengths = lengths, .alpha = -0.37f});
  }
}

TEST_P(AttentionOnGpu, NeighboursThatHoldNanDoNotLeak) {
  run({.name = "poison", .lengths = {33, 64, 1, 100, 31, 200, 90, 5}, .poisoned = {1, 3, 5, 7}});
  run({.name = "poison, longer", .lengths = {333, 400, 257, 290, 513, 64}, .poisoned = {1, 3, 5}});
}

TEST_P(AttentionOnGpu, SamplesOfManyTiles) {
  run({.name = "many tiles", .lengths = {700, 5, 513}, .contexts = {9, 1, 0}, .targets = {0, 1, 150}});
  run({.name = "many tiles, window", .lengths = {700, 640}, .mask = {130, 60, 4}, .targets = {33, 0}});
}

TEST_P(AttentionOnGpu, NothingToDo) {
  run({.name = "empty samples", .lengths = {0, 0, 0}});
  run({.name = "no samples", .lengths = {}});
}

INSTANTIATE_TEST_SUITE_P(Kernels, AttentionOnGpu, ::testing::ValuesIn(all_kernels()), name_of);

TEST(AttentionPlainOnGpu, SinglePrecisionAndOddHeadSizes) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  for (const int head_dim : {1, 40, 128, 200}) {
    for (const AttentionType type : {AttentionType::fp32, AttentionType::bf16}) {
      run_case({.name = "plain",
                .lengths = {1, 20, 0, 64, 130, 300},
                .heads = 4,
                .head_dim = head_dim,
                .type = head_dim == 128 ? AttentionType::fp32 : type,
                .mask = {40, 0, 3},
                .contexts = {1, 3, 0, 5, 20, 9},
                .targets = {1, 4, 0, 20, 17, 30},
                .kernel = AttentionKernel::plain});
    }
  }
}

TEST(AttentionPlainOnGpu, ASampleHasTheSameBitsAloneAndEveryTime) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  for (const int head_dim : {16, 32, 128}) {
    const DeviceCase all{.name = "plain bits",
                         .lengths = {46, 300, 0, 65, 1, 129},
                         .head_dim = head_dim,
                         .type = AttentionType::fp32,
                         .mask = {200, 0, 3},
                         .contexts = {3, 0, 0, 5, 1, 9},
                         .targets = {1, 40, 0, 20, 0, 33},
                         .kernel = AttentionKernel::plain};
    const HostBatch<float> host(all);
    DeviceBatch<float> device(host);
    device.run();
    const std::vector<float> once = device.outputs();
    device.forget_outputs();
    device.run();
    const std::vector<float> again = device.outputs();
    EXPECT_EQ(std::memcmp(once.data(), again.data(), once.size() * sizeof(float)), 0) << head_dim;
    for (std::size_t b = 0; b < all.lengths.size(); ++b) {
      DeviceCase one = all;
      one.lengths = {all.lengths[b]}, one.contexts = {all.contexts[b]}, one.targets = {all.targets[b]};
      HostBatch<float> host_alone(one);
      host_alone.copy_sample(0, host, b);
      DeviceBatch<float> alone(host_alone);
      alone.run();
      const std::vector<float> found = device.outputs(host.offsets()[b], host.offsets()[b + 1]),
                               expected = alone.outputs(host_alone.offsets()[0], host_alone.offsets()[1]);
      EXPECT_TRUE(found == expected) << "head size " << head_dim << ", sample " << b;
    }
  }
}

}  // namespace
}  // namespace hstu

#endif
