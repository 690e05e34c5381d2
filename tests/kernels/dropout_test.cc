#include "hstu/kernels/dropout.h"

#include <vector>

#include <gtest/gtest.h>

namespace hstu::kernels {
namespace {

TEST(Dropout, MaskIsAPureFunctionOfKeyAndElement) {
  const Dropout dropout{0.3, 1234};
  std::vector<float> all(1000);
  dropout_factors(dropout, 0, 1000, all.data());
  for (const std::int64_t first : {0, 1, 3, 4, 63, 64, 65, 500}) {
    for (const std::int64_t n : {1, 2, 7, 64, 129}) {
      std::vector<float> part(static_cast<std::size_t>(n));
      dropout_factors(dropout, first, n, part.data());
      for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(part[i], all[first + i]) << first << " + " << i;
    }
  }
}

TEST(Dropout, FollowsPhilox) {
  const Dropout dropout{0.5, 42};
  std::vector<double> factors(16);
  dropout_factors(dropout, 0, 16, factors.data());
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint32_t word = philox(42, i / 8, 0)[i % 8 / 2];
    const bool kept = (i % 2 == 0 ? word & 0xffff : word >> 16) >= 0x8000u;
    EXPECT_EQ(factors[i], kept ? 2.0 : 0.0) << i;
  }
}

TEST(Dropout, DropsItsRateAndKeepsTheMean) {
  std::vector<float> factors(200'000);
  dropout_factors({0.2, 5}, 0, 200'000, factors.data());
  double sum = 0;
  for (const float factor : factors) sum += factor;
  EXPECT_NEAR(sum / 200'000, 1.0, 0.005);  // four deviations
}

// SC'11 reference vectors of Philox4x32-10 (the authors' known-answer file).
TEST(Philox, MatchesKnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Philox4{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (Philox4{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
}

}  // namespace
}  // namespace hstu::kernels
