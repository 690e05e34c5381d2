// What all kernels do with a relative bias: buckets of distances in time, and exact sums.
#pragma once

#include <cstdint>

#include "hstu/attention/cuda/bias.h"
#include "hstu/attention/mask.h"

namespace hstu::cuda {

inline constexpr int kDistanceClasses = 128, kSeveralThresholds = 1 << 16;

// The class of a distance from 0 to 2^31 - 1: four for each power of two, one number each below 8.
__device__ __forceinline__ int distance_class(std::int32_t distance) {
  constexpr std::uint32_t kBelowOne = (127u << 2) - 1;  // the class of 0
  const std::uint32_t bits = __float_as_uint(__uint2float_rz(static_cast<std::uint32_t>(distance))) >> 21;
  return static_cast<int>(max(bits, kBelowOne) - kBelowOne);
}

// The bucket of a distance of times as 32 bits: the thresholds up to it.
__device__ __forceinline__ int bucket_of(const Bias& bias, std::int32_t distance) {
  const int2 cell = __ldg(bias.classes + distance_class(distance));
  int bucket = (cell.x & 0xffff) + (distance >= cell.y ? 1 : 0);
  if (cell.x >= kSeveralThresholds)
    while (distance >= __ldg(bias.steps + bucket)) ++bucket;
  return bucket;
}
// The same of a distance as 64 bits.
__device__ __forceinline__ int bucket_of_far(const Bias& bias, std::int64_t distance) {
  int begin = 0, end = bias.buckets;
  while (begin < end) {
    const int middle = (begin + end) / 2;
    if (__ldg(bias.thresholds + middle) <= distance)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}
// By the classes where there are some and the distance has 32 bits.
__device__ __forceinline__ int bucket_of_any(const Bias& bias, std::int64_t distance) {
  constexpr std::int64_t kMost = 2147483647;
  return bias.classes != nullptr && distance < kMost ? bucket_of(bias, static_cast<std::int32_t>(distance))
                                                     : bucket_of_far(bias, distance);
}
__device__ __forceinline__ std::int64_t distance_of(std::int64_t a, std::int64_t b) {
  const std::int64_t d = a - b;
  return d < 0 ? -d : d;
}

// The entry of a position table of a key that is `distance` tokens after the query.
__device__ __forceinline__ int position_entry(const Bias& bias, int distance) {
  const int most = bias.positions - 1;
  return most + larger(-most, smaller(most, distance));
}
__device__ __forceinline__ const float* position_table(const Bias& bias, int head) {
  return bias.position + (bias.tables == 1 ? 0 : head * (2 * static_cast<std::int64_t>(bias.positions) - 1));
}
__device__ __forceinline__ const float* time_table(const Bias& bias, int head) {
  return bias.time + (bias.tables == 1 ? 0 : head * (static_cast<std::int64_t>(bias.buckets) + 1));
}

// Adds x to an entry of a gradient. Denormal numbers count as 0.
__device__ __forceinline__ void add_exactly(const ExactSums& sums, int copy, int entry, float x) {
  const std::uint32_t bits = __float_as_uint(x), exponent = bits >> 23 & 255;
  if (exponent == 0) return;
  if (exponent == 255) {
    *sums.not_finite = 1;
    return;
  }
  const auto size =
      static_cast<long long>(static_cast<std::uint64_t>((bits & 0x7fffff) | 0x800000) << (exponent & 7));
  const std::int64_t bin = static_cast<std::int64_t>(copy) * kExponentBins + exponent / 8;
  atomicAdd(sums.bins + bin * sums.entries + entry,
            static_cast<unsigned long long>((bits >> 31) != 0 ? -size : size));
}
__device__ __forceinline__ void add_to_position(const Bias& bias, int head, int entry, float x) {
  add_exactly(bias.d_position, 0, (bias.tables == 1 ? 0 : head * (2 * bias.positions - 1)) + entry, x);
}
// `copy`: any number, best one of the block.
__device__ __forceinline__ void add_to_time(const Bias& bias, int head, int copy, int bucket, float x) {
  add_exactly(bias.d_time, copy % bias.d_time.copies,
              (bias.tables == 1 ? 0 : head * (bias.buckets + 1)) + bucket, x);
}

// Sums of neighbouring terms of one bucket, added together when the bucket changes.
struct BucketRun {
  int bucket = -1;
  float sum = 0;
  __device__ __forceinline__ void add(const Bias& bias, int head, int copy, float factor, int of, float x) {
    if (of != bucket) {
      flush(bias, head, copy, factor);
      bucket = of, sum = 0;
    }
    sum += x;
  }
  __device__ __forceinline__ void flush(const Bias& bias, int head, int copy, float factor) const {
    if (bucket >= 0) add_to_time(bias, head, copy, bucket, factor * sum);
  }
};

}  // namespace hstu::cuda
