#include "hstu/base/float16.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace hstu {
namespace {

template <typename T>
class SixteenBits : public testing::Test {};

using Types = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(SixteenBits, Types);

template <typename T>
float value(int bits) {
  return static_cast<float>(T::from_bits(static_cast<std::uint16_t>(bits)));
}

TYPED_TEST(SixteenBits, EveryPatternSurvivesAFloat) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const float f = value<TypeParam>(bits);
    const TypeParam back(f);
    if (std::isnan(f))
      ASSERT_TRUE(std::isnan(static_cast<float>(back))) << bits;
    else
      ASSERT_EQ(back.bits(), bits);
  }
}

// Between each two neighbours: the middle goes to the even one, what is beside it to the nearer one.
TYPED_TEST(SixteenBits, RoundsToNearestEven) {
  for (const int sign : {0, 0x8000}) {
    for (int magnitude = 0; !std::isinf(value<TypeParam>(magnitude + 1)); ++magnitude) {
      const int low = sign | magnitude, high = low + 1, even = magnitude % 2 == 0 ? low : high;
      const float from = value<TypeParam>(low), to = value<TypeParam>(high);
      const float middle = from + (to - from) / 2;
      ASSERT_EQ(TypeParam(middle).bits(), even) << low;
      ASSERT_EQ(TypeParam(std::nextafter(middle, from)).bits(), low);
      ASSERT_EQ(TypeParam(std::nextafter(middle, to)).bits(), high);
    }
  }
}

TYPED_TEST(SixteenBits, ValuesAscendWithTheirPatterns) {
  for (int bits = 0; !std::isinf(value<TypeParam>(bits)); ++bits) {
    ASSERT_LT(value<TypeParam>(bits), value<TypeParam>(bits + 1));
    ASSERT_EQ(value<TypeParam>(bits | 0x8000), -value<TypeParam>(bits));
  }
}

TYPED_TEST(SixteenBits, ANanStaysANanWhateverItsPayload) {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xff80ffffu}) {
    EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(std::bit_cast<float>(bits))))) << bits;
  }
}

TEST(BFloat16, KnownValues) {
  EXPECT_EQ(BFloat16(1.0f).bits(), 0x3f80);
  EXPECT_EQ(BFloat16(-2.5f).bits(), 0xc020);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits(), 0x7f80);  // rounds up to infinity
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::infinity()).bits(), 0x7f80);
}

TEST(Float16, KnownValues) {
  EXPECT_EQ(Float16(1.0f).bits(), 0x3c00);
  EXPECT_EQ(Float16(-2.5f).bits(), 0xc100);
  EXPECT_EQ(Float16(65504.0f).bits(), 0x7bff);  // the largest finite one
  EXPECT_EQ(Float16(65519.996f).bits(), 0x7bff);
  EXPECT_EQ(Float16(65520.0f).bits(), 0x7c00);
  EXPECT_EQ(Float16(0x1p-24f).bits(), 0x0001);
  EXPECT_EQ(Float16(0x1p-25f).bits(), 0x0000);  // half of it: to even
  EXPECT_EQ(Float16(-0.0f).bits(), 0x8000);
}

static_assert(std::is_same_v<Accumulator<BFloat16>, float> && std::is_same_v<Accumulator<Float16>, float> &&
              std::is_same_v<Accumulator<float>, float> && std::is_same_v<Accumulator<double>, double>);

}  // namespace
}  // namespace hstu
