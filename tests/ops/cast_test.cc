#include "hstu/ops/cast.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(Cast, RoundsConstantsToTheType) {
  const Tensor x = Tensor::from<double>({2, 1}, {1.0 / 3, 1e300});
  Tape tape;
  const Variable same = ops::cast(tape, x, DType::f64), rounded = ops::cast(tape, x, DType::f32);
  EXPECT_EQ(same.value().data<double>()[0], 1.0 / 3);
  EXPECT_EQ(rounded.value().data<float>()[0], 1.0f / 3.0f);
  EXPECT_EQ(rounded.value().shape(), (Shape{2, 1}));
  EXPECT_FALSE(rounded.needs_gradient());
}

TEST(Cast, FillsWithANumberOfTheType) {
  for (const DType type : {DType::f32, DType::f64}) {
    const Tensor x = ops::filled({3}, 1.0 / 3, type, host_context());
    with_float_type(type, [&]<typename T>() { EXPECT_EQ(x.data<T>()[2], static_cast<T>(1.0 / 3)); });
  }
}

}  // namespace
}  // namespace hstu
