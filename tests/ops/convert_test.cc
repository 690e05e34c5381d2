// Conversion on the host, and weights in another type.
#include "hstu/ops/convert.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(Convert, RoundsToNearestAndPassesTheGradientBack) {
  Tape tape;
  const Variable x(Tensor::from<float>({3}, {1, 1.00390625f, -2.5f}));
  const Variable y = ops::convert(tape, x, DType::bf16);
  EXPECT_EQ(static_cast<float>(y.value().data<BFloat16>()[1]), 1.0f) << "a tie goes to even";
  EXPECT_EQ(static_cast<float>(y.value().data<BFloat16>()[2]), -2.5f);
  Tensor dy = Tensor::empty({3}, DType::bf16);
  for (int i = 0; i < 3; ++i) dy.mutable_data<BFloat16>()[i] = BFloat16(static_cast<float>(i));
  tape.backward(y, dy);
  EXPECT_EQ(x.gradient().dtype(), DType::f32);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(x.gradient().data<float>()[i], static_cast<float>(i));
}

TEST(Convert, TheSameTypeIsTheSameVariable) {
  Tape tape;
  const Variable x(Tensor::from<double>({1}, {2}));
  EXPECT_EQ(ops::convert(tape, x, DType::f64).value().raw(), x.value().raw());
}

TEST(Convert, AWeightKeepsItsGradientInItsOwnType) {
  Tape tape;
  const Parameter parameter{"w", Tensor::from<float>({2}, {1, 3}), Tensor::zeros({2}, DType::f32)};
  const Variable weight = ops::weight(tape, parameter, DType::bf16);
  EXPECT_EQ(weight.value().dtype(), DType::bf16);
  EXPECT_EQ(weight.gradient().raw(), parameter.gradient.raw());
  EXPECT_EQ(weight.parameter(), &parameter);
  EXPECT_EQ(ops::weight(tape, parameter, DType::f32).value().raw(), parameter.value.raw());
}

}  // namespace
}  // namespace hstu
