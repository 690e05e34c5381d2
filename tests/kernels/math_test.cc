#include "hstu/kernels/math.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace hstu::kernels {
namespace {

TEST(Exp, FloatIsRightToThreePartsInTenMillionAndKeepsNan) {
  for (double x = -86; x < 87; x += 0.00037) {
    const float value = kernels::exp(static_cast<float>(x));
    const double expected = std::exp(static_cast<double>(static_cast<float>(x)));
    ASSERT_NEAR(value, expected, 3e-7 * expected) << x;
  }
  EXPECT_TRUE(std::isnan(kernels::exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(kernels::sigmoid(1000.0f), 1.0f);
  EXPECT_LT(kernels::sigmoid(-1000.0f), 1e-37f);
}

}  // namespace
}  // namespace hstu::kernels
