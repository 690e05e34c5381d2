#include "hstu/kernels/dropout.h"

#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"

namespace hstu::kernels {
namespace {

std::vector<float> factors_of(const Dropout& dropout, std::int64_t row, std::int64_t width) {
  std::vector<float> factors(static_cast<std::size_t>(width));
  dropout_factors(dropout, row, width, factors.data());
  return factors;
}

TEST(Dropout, AMaskDependsOnKeyNameAndColumnAlone) {
  const std::vector<std::int64_t> names{77, -5, 1, std::int64_t{1} << 60};
  const Dropout dropout{0.3, 1234, names.data()}, other_key{0.3, 1235, names.data()};
  const std::vector<std::int64_t> moved{1, 77};
  const Dropout elsewhere{0.3, 1234, moved.data()};
  EXPECT_EQ(factors_of(dropout, 0, 400), factors_of(elsewhere, 1, 400));
  EXPECT_EQ(factors_of(dropout, 2, 400), factors_of(elsewhere, 0, 400));
  EXPECT_NE(factors_of(dropout, 0, 400), factors_of(dropout, 1, 400));
  EXPECT_NE(factors_of(dropout, 0, 400), factors_of(other_key, 0, 400));
  EXPECT_EQ(factors_of(dropout, 2, 400), factors_of({0.3, 1234, nullptr}, 1, 400));  // a row's own number
}

// On both sides of every border between what is drawn together.
TEST(Dropout, AColumnsFactorDoesNotDependOnTheWidth) {
  const Dropout dropout{0.4, 9, nullptr};
  const std::vector<float> all = factors_of(dropout, 3, 1000);
  for (const std::int64_t width : {0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 191, 192, 193, 384, 999}) {
    const std::vector<float> part = factors_of(dropout, 3, width);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin())) << width;
  }
}

TEST(Dropout, FollowsItsFormula) {
  const std::vector<std::int64_t> names{-3};
  const Dropout dropout{0.3, 42, names.data()};
  std::vector<double> factors(300);
  dropout_factors(dropout, 0, 300, factors.data());
  const std::uint32_t threshold = 19661;  // round(0.3 * 65536)
  for (std::size_t c = 0; c < 300; ++c) {
    const Philox4 words = philox(mix64(42 ^ static_cast<std::uint64_t>(-3)), c / 8, 0);
    const std::uint32_t piece = words[c % 8 / 2] >> (c % 2 * 16) & 0xffff;
    EXPECT_EQ(factors[c], piece < threshold ? 0 : 65536.0 / (65536.0 - threshold)) << c;
  }
}

TEST(Dropout, DropsItsRateAndKeepsTheMean) {
  double sum = 0;
  for (std::int64_t row = 0; row < 1000; ++row) {
    for (const float factor : factors_of({0.2, 5, nullptr}, row, 200)) sum += factor;
  }
  EXPECT_NEAR(sum / 200'000, 1.0, 0.005);  // four deviations
}

TEST(Dropout, KeepsAllAtRateZeroAndNothingNear1) {
  for (const float factor : factors_of({0, 5, nullptr}, 0, 50)) EXPECT_EQ(factor, 1.0f);
  for (const float factor : factors_of({1 - 1e-9, 5, nullptr}, 0, 50)) EXPECT_EQ(factor, 0.0f);
}

// SC'11 reference vectors of Philox4x32-10 (the authors' known-answer file).
TEST(Philox, MatchesKnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Philox4{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (Philox4{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
}

}  // namespace
}  // namespace hstu::kernels
