#include "hstu/device/device.h"
#include "training/retrieval_golden.h"

namespace hstu::testing {
namespace {

class RetrievalGoldenOnGpu : public RetrievalGolden {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  }
};

TEST_P(RetrievalGoldenOnGpu, AStepIsThatOfPyTorch) {
  expect_the_step_of_pytorch("cuda");
}

INSTANTIATE_TEST_SUITE_P(All, RetrievalGoldenOnGpu, ::testing::ValuesIn(golden_steps()), name_of_golden);

}  // namespace
}  // namespace hstu::testing
