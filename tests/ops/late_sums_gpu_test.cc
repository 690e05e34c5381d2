// Late work (LaunchGroups::Late): in groups, the sums of gradients of parameters are one launch at the end of
// a backward pass.
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/ops/norm.h"
#include "hstu/tensor/tape.h"
#include "support/gpu_test.h"
#include "support/op_cases.h"

namespace hstu {
namespace {

class LateSumsOnGpu : public testing::GpuTest {
 protected:
  void SetUp() override {
    testing::GpuTest::SetUp();
    if (IsSkipped()) return;
    for (Parameter& p : parameters_)
      p = {"p", testing::random_tensor({kWidth}, DType::f32, 3).copy(gpu_), Tensor()};
  }
  // Norms that share their parameters: each parameter has two sums.
  Variable norms(Tape& tape, Variable x) {
    for (Parameter& p : parameters_) p.gradient = Tensor::zeros({kWidth}, DType::f32, gpu_);
    for (int i = 0; i < 2; ++i)
      x = ops::layer_norm(tape, x, Variable(parameters_[0]), Variable(parameters_[1]), 1e-5);
    return x;
  }
  std::vector<float> gradients() const {
    std::vector<float> all;
    for (const Parameter& p : parameters_) {
      const Tensor here = p.gradient.to_host(gpu_.stream);
      all.insert(all.end(), here.data<float>(), here.data<float>() + here.size());
    }
    return all;
  }
  std::vector<float> gradients_of(const Tensor& x) {
    Tape tape(gpu_);
    tape.backward(norms(tape, Variable(x)), x);
    return gradients();
  }

  static constexpr std::int64_t kWidth = 64;
  Parameter parameters_[2];
};

TEST_F(LateSumsOnGpu, HaveTheBitsOfSumsAtOnce) {
  for (const std::int64_t rows : {3, 1000, 40000}) {
    SCOPED_TRACE(rows);
    const Tensor x = testing::random_tensor({rows, kWidth}, DType::f32, 5).copy(gpu_);
    const std::vector<float> at_once = gradients_of(x);
    EXPECT_NE(at_once, std::vector<float>(at_once.size()));
    std::vector<float> late;
    gpu_.stream.in_groups([&] { late = gradients_of(x); });
    EXPECT_EQ(late, at_once);
  }
}

TEST_F(LateSumsOnGpu, AnErrorInABackwardPassLeavesTheStreamUsable) {
  const Tensor x = testing::random_tensor({1000, kWidth}, DType::f32, 5).copy(gpu_);
  const std::vector<float> expected = gradients_of(x);
  EXPECT_THROW(gpu_.stream.in_groups([&] {
    Tape tape(gpu_);
    const Variable bad = tape.record(x, {Variable(x)}, [](Tensor&) { fail("in the middle"); });
    tape.backward(norms(tape, bad), x);
  }),
               hstu::Error);
  std::vector<float> late;
  gpu_.stream.in_groups([&] { late = gradients_of(x); });
  EXPECT_EQ(late, expected);
}

}  // namespace
}  // namespace hstu
