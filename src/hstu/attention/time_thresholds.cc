#include "hstu/attention/time_thresholds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hstu/base/error.h"

namespace hstu {

// The logarithm in double, rounded to fp32, is the correctly rounded one in fp32.
std::int64_t log_time_bucket(std::int64_t distance, std::int64_t buckets, float divisor) {
  const auto x = static_cast<float>(std::max<std::int64_t>(distance, 1));
  const auto logarithm = static_cast<float>(std::log(static_cast<double>(x)));
  const float bucket = logarithm / divisor;
  return bucket >= static_cast<float>(buckets) ? buckets : static_cast<std::int64_t>(bucket);
}

std::vector<std::int64_t> log_time_thresholds(std::int64_t buckets, float divisor) {
  if (buckets < 0 || !(divisor > 0) || std::isinf(divisor))
    fail_usage("time buckets: expected 0 buckets or more and a divisor above 0, found {} and {}", buckets,
               divisor);
  std::vector<std::int64_t> thresholds;
  thresholds.reserve(static_cast<std::size_t>(buckets));
  std::int64_t low = 0;  // a distance whose bucket is not above that of the next threshold
  for (std::int64_t bucket = 0; bucket < buckets; ++bucket) {
    // The buckets of (low, high] ascend; high has one above `bucket`, or is taken where no distance has.
    std::int64_t high = std::numeric_limits<std::int64_t>::max();
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (log_time_bucket(middle, buckets, divisor) > bucket ? high : low) = middle;
    }
    thresholds.push_back(high);
    low = high - 1;
  }
  return thresholds;
}

}  // namespace hstu
