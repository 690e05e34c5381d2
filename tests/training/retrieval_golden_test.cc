#include "training/retrieval_golden.h"

namespace hstu::testing {
namespace {

TEST_P(RetrievalGolden, AStepIsThatOfPyTorch) {
  expect_the_step_of_pytorch("host");
}

INSTANTIATE_TEST_SUITE_P(All, RetrievalGolden, ::testing::ValuesIn(golden_steps()), name_of_golden);

}  // namespace
}  // namespace hstu::testing
