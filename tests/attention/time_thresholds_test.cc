// Requirement: thresholds of time buckets are integers that equal the definition in fp32.
#include "hstu/attention/time_thresholds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr std::int64_t kTimeBuckets = 128;

std::int64_t bucket_of(const std::vector<std::int64_t>& thresholds, std::int64_t distance) {
  return std::upper_bound(thresholds.begin(), thresholds.end(), distance) - thresholds.begin();
}

// The smallest distance of a bucket.
std::int64_t first_of(const std::vector<std::int64_t>& thresholds, std::size_t bucket) {
  return bucket == 0 ? 1 : thresholds[bucket - 1];
}

TEST(TimeThresholds, AreThePublishedOnes) {
  const std::vector<std::int64_t> thresholds = log_time_thresholds(kTimeBuckets);
  ASSERT_EQ(std::ssize(thresholds), kTimeBuckets);
  const std::vector<std::int64_t> published{1,  2,  2,  3,  4,  5,  7,   9,   12,  16,
                                            21, 28, 38, 51, 68, 92, 124, 167, 226, 305};
  for (std::size_t b = 0; b < published.size(); ++b) EXPECT_EQ(first_of(thresholds, b), published[b]) << b;
  EXPECT_EQ(first_of(thresholds, 37), 68'666);
  EXPECT_EQ(first_of(thresholds, 57), 28'261'151);
  EXPECT_EQ(bucket_of(thresholds, 0), 0);
  EXPECT_EQ(bucket_of(thresholds, 1'000'000'000), 68);
  EXPECT_EQ(bucket_of(thresholds, (std::int64_t{1} << 31) - 1), 71);
}

// The smallest distances of buckets 20 on, of torch.log(x) / 0.301 of PyTorch 2.15 in fp32 on a CPU, for
// distances up to 100,000 (tools/retrieval_torch.py: time_buckets).
TEST(TimeThresholds, AreThoseOfPyTorch) {
  const std::vector<std::int64_t> thresholds = log_time_thresholds(kTimeBuckets);
  const std::vector<std::int64_t> torch{412,  557,   752,   1016,  1372,  1854,  2505,  3385,  4574, 6180,
                                        8350, 11283, 15245, 20600, 27834, 37610, 50818, 68666, 92782};
  for (std::size_t i = 0; i < torch.size(); ++i) EXPECT_EQ(first_of(thresholds, 20 + i), torch[i]) << 20 + i;
  EXPECT_GT(first_of(thresholds, 20 + torch.size()), 100'000);
}

TEST(TimeThresholds, EqualTheDefinitionForEveryDistanceUpTo2To20) {
  const std::vector<std::int64_t> thresholds = log_time_thresholds(kTimeBuckets);
  for (std::int64_t distance = 0; distance <= std::int64_t{1} << 20; ++distance)
    ASSERT_EQ(bucket_of(thresholds, distance), log_time_bucket(distance, kTimeBuckets)) << distance;
}

TEST(TimeThresholds, EqualTheDefinitionAroundEveryThreshold) {
  for (const float divisor : {0.301F, 0.05F, 2.5F}) {
    const std::vector<std::int64_t> thresholds = log_time_thresholds(kTimeBuckets, divisor);
    EXPECT_TRUE(std::is_sorted(thresholds.begin(), thresholds.end()));
    for (const std::int64_t threshold : thresholds) {
      if (threshold == std::numeric_limits<std::int64_t>::max()) continue;
      for (std::int64_t distance = threshold - 2; distance <= threshold + 2; ++distance)
        ASSERT_EQ(bucket_of(thresholds, distance), log_time_bucket(distance, kTimeBuckets, divisor))
            << distance;
    }
  }
}

// By a definition of its own: long double, rounded once to fp32.
TEST(TimeThresholds, TakeACorrectlyRoundedLogarithm) {
  for (const std::int64_t threshold : log_time_thresholds(kTimeBuckets)) {
    for (std::int64_t distance = std::max<std::int64_t>(1, threshold - 2); distance <= threshold + 2;
         ++distance) {
      const auto x = static_cast<long double>(static_cast<float>(distance));
      const float quotient = static_cast<float>(std::log(x)) / 0.301F;
      ASSERT_EQ(log_time_bucket(distance, kTimeBuckets),
                static_cast<std::int64_t>(std::min(quotient, 128.0F)))
          << distance;
    }
  }
}

TEST(TimeThresholds, HaveTheGreatestNumberWhereNoDistanceIsLongEnough) {
  const std::vector<std::int64_t> thresholds = log_time_thresholds(50, 1);  // ln of 2^63 is 43.7
  EXPECT_EQ(std::count(thresholds.begin(), thresholds.end(), std::numeric_limits<std::int64_t>::max()), 7);
  EXPECT_TRUE(log_time_thresholds(0).empty());
}

TEST(TimeThresholds, RefuseWhatIsNoRule) {
  EXPECT_THROW(log_time_thresholds(-1), UsageError);
  EXPECT_THROW(log_time_thresholds(4, 0), UsageError);
  EXPECT_THROW(log_time_thresholds(4, std::numeric_limits<float>::quiet_NaN()), UsageError);
}

}  // namespace
}  // namespace hstu
