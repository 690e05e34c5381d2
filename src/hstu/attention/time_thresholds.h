// Thresholds of the times of a relative bias (problem.h): integers, found once on the host, so that every
// device has the same buckets to the bit and no kernel takes a logarithm.
#pragma once

#include <cstdint>
#include <vector>

namespace hstu {

// The bucket of Meta's models for a distance of `distance` time units, 0 or more: the whole part of
// ln(max(distance, 1)) / divisor, at most `buckets`, in fp32 (a correctly rounded logarithm, then a
// division).
std::int64_t log_time_bucket(std::int64_t distance, std::int64_t buckets, float divisor = 0.301F);

// (buckets) ascending: number i is the smallest distance whose bucket is above i, so that a bucket is the
// number of thresholds up to the distance. A bucket that no distance below 2^63 reaches has 2^63 - 1. Throws
// UsageError for buckets < 0 or a divisor that is not above 0.
std::vector<std::int64_t> log_time_thresholds(std::int64_t buckets, float divisor = 0.301F);

}  // namespace hstu
