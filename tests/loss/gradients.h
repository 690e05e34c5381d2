// Gradients against finite differences.
#pragma once

#include <cmath>
#include <functional>
#include <string_view>

#include <gtest/gtest.h>

#include "hstu/tensor/tensor.h"

namespace hstu::testing {

// `loss` is a function of `input` (f64), which has `gradient`.
inline void expect_gradient(Tensor& input, const Tensor& gradient, const std::function<double()>& loss,
                            std::string_view name) {
  constexpr double kDifference = 1e-6;
  ASSERT_EQ(gradient.size(), input.size()) << name;
  for (std::int64_t i = 0; i < input.size(); ++i) {
    const double start = input.data<double>()[i];
    input.mutable_data<double>()[i] = start + kDifference;
    const double above = loss();
    input.mutable_data<double>()[i] = start - kDifference;
    const double below = loss();
    input.mutable_data<double>()[i] = start;
    const double expected = (above - below) / (2 * kDifference);
    EXPECT_NEAR(gradient.data<double>()[i], expected, 1e-6 * (1 + std::abs(expected))) << name << " " << i;
  }
}

}  // namespace hstu::testing
