// Batches large enough that what the kernels share between tiles is used again and again. They skip where there
// is no GPU.
#ifdef HSTU_WITH_CUDA

#include "attention/device_case.h"

namespace hstu {
namespace {

class LargeAttentionOnGpu : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  }
};

// More tiles than the backward pass has room for sums of dQ, several times.
TEST_P(LargeAttentionOnGpu, ManyShortSamples) {
  DeviceCase c{.name = "many samples", .lengths = {}, .heads = 4, .head_dim = GetParam()};
  std::mt19937 random(7);
  for (int i = 0; i < 260; ++i) c.lengths.push_back(static_cast<int>(random() % 200));
  DeviceRun<__nv_bfloat16> one(c);
  one.run();
  if (!HasFatalFailure()) one.compare();
}

INSTANTIATE_TEST_SUITE_P(HeadSize, LargeAttentionOnGpu, ::testing::Values(32, 64, 128, 256),
                         [](const auto& head_dim) { return "D" + std::to_string(head_dim.param); });

}  // namespace
}  // namespace hstu

#endif
