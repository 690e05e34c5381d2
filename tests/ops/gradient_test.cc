// Every op's gradients against central finite differences in double.
#include <cmath>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "hstu/base/threads.h"
#include "support/op_cases.h"

namespace hstu {
namespace {

using testing::OpCase;

class Gradient : public ::testing::TestWithParam<OpCase> {};

// sum over y of y * weights: a scalar that every element of y reaches.
double weighted_sum(const Tensor& y, const Tensor& weights) {
  double sum = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) sum += y.data<double>()[i] * weights.data<double>()[i];
  return sum;
}

std::vector<Variable> leaves(const OpCase& c) {
  std::vector<Variable> variables;
  for (const Tensor& input : c.inputs) variables.emplace_back(input.copy());
  return variables;
}

// Every `step`-th element of each input.
void expect_finite_differences(const OpCase& c, std::int64_t step, double tolerance) {
  Tape tape;
  const std::vector<Variable> inputs = leaves(c);
  const Variable y = c.run(tape, inputs);
  const Tensor weights = testing::random_tensor(y.value().shape(), DType::f64, 99);
  tape.backward(y, weights);

  constexpr double kDifference = 1e-5;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_TRUE(inputs[i].has_gradient()) << "input " << i;
    for (std::int64_t e = 0; e < inputs[i].value().size(); e += step) {
      const auto value_at = [&](double shift) {
        std::vector<Variable> moved = leaves(c);
        Tensor input = c.inputs[i].copy();
        input.mutable_data<double>()[e] += shift;
        moved[i] = Variable(input);
        Tape forward(false);
        return weighted_sum(c.run(forward, moved).value(), weights);
      };
      const double expected = (value_at(kDifference) - value_at(-kDifference)) / (2 * kDifference);
      const double found = inputs[i].gradient().data<double>()[e];
      ASSERT_NEAR(found, expected, tolerance * (1 + std::abs(expected))) << "input " << i << " element " << e;
    }
  }
}

TEST_P(Gradient, AgreesWithFiniteDifferences) {
  expect_finite_differences(GetParam(), 1, 1e-7);
}

// R-4 of the retrieval specification: 25 and 50 have strides that are no multiples of 16 bytes.
TEST(AttentionGradient, OfEveryHeadSizeAgreesWithFiniteDifferences) {
  for (const std::int64_t head_dim : {4, 8, 16, 25, 32, 50, 64, 128, 256}) {
    int found = 0;
    for (const OpCase& c :
         testing::host_op_cases({.samples = 3, .tokens_per_sample = 3, .head_dim = head_dim})) {
      if (c.name.find("attention_") != 0) continue;
      SCOPED_TRACE(c.name + " " + std::to_string(head_dim));
      expect_finite_differences(c, head_dim > 16 ? 37 : 1, 1e-6);
      ++found;
    }
    EXPECT_EQ(found, 2);
  }
}

// A second use of the same inputs adds to the gradients that the first left.
TEST_P(Gradient, AccumulatesOverTwoUses) {
  const OpCase& c = GetParam();
  const auto gradients = [&](int uses) {
    Tape tape;
    const std::vector<Variable> inputs = leaves(c);
    Variable y = c.run(tape, inputs);
    for (int use = 1; use < uses; ++use) y = ops::add(tape, y, c.run(tape, inputs));
    tape.backward(y, testing::random_tensor(y.value().shape(), DType::f64, 99));
    std::vector<Tensor> result;
    result.reserve(inputs.size());
    for (const Variable& input : inputs) result.push_back(input.gradient());
    return result;
  };
  const std::vector<Tensor> once = gradients(1), twice = gradients(2);
  for (std::size_t i = 0; i < once.size(); ++i) {
    for (std::int64_t e = 0; e < once[i].size(); ++e) {
      const double expected = 2 * once[i].data<double>()[e];
      ASSERT_NEAR(twice[i].data<double>()[e], expected, 1e-12 * (1 + std::abs(expected)));
    }
  }
}

// float differs from double by rounding only.
TEST_P(Gradient, FloatFollowsDouble) {
  const OpCase& c = GetParam();
  const auto forward = [&](DType type) {
    for (const OpCase& candidate : testing::op_cases(type)) {
      if (candidate.name != c.name) continue;
      Tape tape(false);
      return candidate.run(tape, leaves(candidate)).value();
    }
    return Tensor();
  };
  const Tensor expected = forward(DType::f64), found = forward(DType::f32);
  for (std::int64_t e = 0; e < expected.size(); ++e) {
    const double y = expected.data<double>()[e];
    ASSERT_NEAR(found.data<float>()[e], y, 1e-5 * (1 + std::abs(y)));
  }
}

// Sizes at which the work is really shared out.
TEST_P(Gradient, HasTheSameBitsWithAnyNumberOfThreads) {
  const testing::CaseSize size{
      .samples = 9, .tokens_per_sample = 150, .width = 32, .hidden = 40, .heads = 2, .head_dim = 16};
  const auto results = [&](int count) {
    const int before = threads();
    set_threads(count);
    std::vector<Tensor> tensors;
    for (const OpCase& c : testing::op_cases(DType::f32, size)) {
      if (c.name != GetParam().name) continue;
      Tape tape;
      const std::vector<Variable> inputs = leaves(c);
      const Variable y = c.run(tape, inputs);
      tensors.push_back(y.value());
      tape.backward(y, testing::random_tensor(y.value().shape(), DType::f32, 99));
      for (const Variable& input : inputs) tensors.push_back(input.gradient());
    }
    set_threads(before);
    return tensors;
  };
  const std::vector<Tensor> one = results(1), three = results(3);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(std::memcmp(one[i].raw(), three[i].raw(), one[i].bytes()), 0)
        << "tensor " << i << ", 0 is the output";
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Gradient, ::testing::ValuesIn(testing::op_cases(DType::f64)),
                         [](const auto& instance) { return instance.param.name; });
INSTANTIATE_TEST_SUITE_P(HostOps, Gradient, ::testing::ValuesIn(testing::host_op_cases()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace hstu
