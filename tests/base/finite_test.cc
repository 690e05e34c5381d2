#include "hstu/base/finite.h"

#include <vector>

#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(FirstNotFinite, IsTheFirstWhateverTheThreads) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> values(200'001, std::numeric_limits<float>::max());
  const auto n = static_cast<std::int64_t>(values.size());
  const int before = threads();
  for (const int count : {1, 2, 5}) {
    set_threads(count);
    EXPECT_EQ(first_not_finite(values.data(), n), n) << "the largest float is finite";
    EXPECT_EQ(first_not_finite(values.data(), 0), 0);
    auto bad = values;
    bad[200'000] = inf;
    EXPECT_EQ(first_not_finite(bad.data(), n), 200'000);
    bad[70'000] = -inf;
    bad[65'537] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(first_not_finite(bad.data(), n), 65'537);
  }
  set_threads(before);
  const std::vector<double> wide{1e300, -1e308, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_EQ(first_not_finite(wide.data(), 3), 2);
}

}  // namespace
}  // namespace hstu
