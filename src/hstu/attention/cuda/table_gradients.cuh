// Gradients of the tables of a relative bias, from the gradients of scores in the registers of a warp
// (score_bias.cuh). Those of unseen elements are 0. What a warp adds to the exact sums (bias.h) is a sum of
// fp32 in an order that its rows alone decide, or of integers.
#pragma once

#include "hstu/attention/cuda/limits.h"
#include "hstu/attention/cuda/score_bias.cuh"

namespace hstu::cuda {

// Shared memory of a warp: 8 rows of N + 8 columns for diagonals, or 16 elements of each thread; for times,
// sums of integers by bucket, zero between uses.
inline constexpr int kHistogram = kTensorBuckets + 1;
template <int N>
struct GradientMemory {
  float elements[8 * (N + 8) > 512 ? 8 * (N + 8) : 512];
  std::int32_t histogram[kHistogram];
  // What neighbouring steps add to one bucket is collected by thread until the bucket changes or the tile
  // ends. -1: there is nothing. (In registers the backward pass for Hopper has no room.)
  std::int32_t bucket[32];
  float time[32];

  // Called by the warp before its first use.
  __device__ __forceinline__ void clear() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int i = lane; i < kHistogram; i += 32) histogram[i] = 0;
    bucket[lane] = -1;
    __syncwarp();
  }
};

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

// The gradients of both tables by a warp, over the steps of a tile. `factor` is missing in the elements, and
// the same in all calls of a tile.
template <int N, bool kOfKeys>
struct TableGradients {
  static __device__ __forceinline__ void add(const float (&ds)[N / 2], const ScoreTile<kOfKeys>& t,
                                             const WarpBuckets<N, kOfKeys>& buckets, float factor,
                                             GradientMemory<N>& memory) {
    if (t.bias.d_time.bins != nullptr) add_times(ds, t, buckets, factor, memory);
    if (t.bias.d_position.bins != nullptr) add_positions(ds, t, factor, memory);
  }
  // At the end of a tile.
  static __device__ __forceinline__ void finish(const ScoreTile<kOfKeys>& t, float factor,
                                                GradientMemory<N>& memory) {
    add_run(t, factor, memory, -1, 0);
  }

 private:
  // Begins a run of `bucket`, or continues it, with the thread's `x`.
  static __device__ __forceinline__ void add_run(const ScoreTile<kOfKeys>& t, float factor,
                                                 GradientMemory<N>& memory, int bucket, float x) {
    const std::uint32_t lane = opaque(threadIdx.x) % 32;
    const int before = memory.bucket[lane];
    if (bucket == before) {
      memory.time[lane] += x;
    } else {
      if (before >= 0) add_to_bucket(t, factor, before, memory.time[lane]);
      memory.bucket[lane] = bucket, memory.time[lane] = x;
    }
  }
  static __device__ __forceinline__ bool is_first() { return opaque(threadIdx.x) % 32 == 0; }
  static __device__ __forceinline__ void add_to_bucket(const ScoreTile<kOfKeys>& t, float factor, int to,
                                                       float x) {
    x = warp_sum(x);
    if (is_first()) add_to_time(t.bias, t.head, static_cast<int>(blockIdx.x), to, factor * x);
  }

  static __device__ __forceinline__ void add_times(const float (&ds)[N / 2], const ScoreTile<kOfKeys>& t,
                                                   const WarpBuckets<N, kOfKeys>& buckets, float factor,
                                                   GradientMemory<N>& memory) {
    bool many = false;
#pragma unroll
    for (int group = 0; group < N / 32; ++group) {
      if (buckets.range[group] > kMostLimits) {
        many = true;
        continue;
      }
      float above = 0;
#pragma unroll
      for (int i = 0; i < 16; ++i) above += ds[group * 16 + i];
      if (buckets.range[group] != 0) {
        const FewBuckets<kOfKeys> few(t, group);
#pragma unroll 1
        for (int k = buckets.base[group]; k < buckets.last(group); ++k) {
          float sum = 0;
          few.compare(t.bias, k, [&](int i, bool is_above) { sum += is_above ? ds[group * 16 + i] : 0.0f; });
          add_to_bucket(t, factor, k, above - sum);
          above = sum;
        }
      }
      add_run(t, factor, memory, buckets.last(group), above);
    }
    if (many) add_by_bucket(ds, t, buckets, factor, memory);
  }

  // The groups of many buckets, element by element, as integers: what the largest element leaves of 32 bits
  // for a sum of 16 N of them.
  static __device__ __forceinline__ void add_by_bucket(const float (&ds)[N / 2], const ScoreTile<kOfKeys>& t,
                                                       const WarpBuckets<N, kOfKeys>& buckets, float factor,
                                                       GradientMemory<N>& memory) {
    static_assert(16 * N <= 1024);
    std::uint32_t largest = 0;
    int low = kHistogram, high = 0;
#pragma unroll
    for (int group = 0; group < N / 32; ++group) {
      if (buckets.range[group] <= kMostLimits) continue;
#pragma unroll
      for (int i = 0; i < 16; ++i) largest = max(largest, __float_as_uint(ds[group * 16 + i]) & 0x7fffffff);
      low = smaller(low, buckets.base[group]), high = larger(high, buckets.last(group));
    }
    const int exponent = static_cast<int>(__reduce_max_sync(0xffffffffu, largest) >> 23);
    if (exponent == 0) return;  // zeros and denormal numbers
    if (exponent == 255) {
      *t.bias.d_time.not_finite = 1;
      return;
    }
    // 2^shift times an element is below 2^21.
    const int shift = smaller(20 - (exponent - 127), 126);
    const float scale = power_of_two(shift);
    const auto add_one = [&](int of, float x) {
      constexpr float kOne = 12582912.0f;  // plus a number below 2^22: the integer is in the low bits
      atomicAdd(memory.histogram + of, __float_as_int(fmaf(x, scale, kOne)) - __float_as_int(kOne));
    };
#pragma unroll
    for (int group = 0; group < N / 32; ++group) {
      if (buckets.are_many(group)) {
        look_up(t, group, [&](int i, int of) { add_one(of, ds[group * 16 + i]); });
      } else if (buckets.is_far(group)) {
        float* const own = memory.elements + opaque(threadIdx.x) % 32;
#pragma unroll
        for (int i = 0; i < 16; ++i) own[32 * i] = ds[group * 16 + i];
#pragma unroll 1
        for (int i = 0; i < 16; ++i) add_one(far_bucket(t, group, i), own[32 * i]);
      }
    }
    __syncwarp();
#pragma unroll 1
    for (int of = low + static_cast<int>(opaque(threadIdx.x)) % 32; of <= high; of += 32) {
      const std::int32_t size = memory.histogram[of];
      memory.histogram[of] = 0;
      if (size != 0)
        add_to_time(t.bias, t.head, static_cast<int>(blockIdx.x), of,
                    static_cast<float>(size) * power_of_two(-shift) * factor);
    }
    __syncwarp();
  }
  static __device__ __forceinline__ float power_of_two(int exponent) {
    return __int_as_float((exponent + 127) << 23);
  }

  // Diagonals: a thread adds its two rows, then lanes add 8 rows in shared memory.
  static __device__ __forceinline__ void add_positions(const float (&ds)[N / 2], const ScoreTile<kOfKeys>& t,
                                                       float factor, GradientMemory<N>& memory) {
    constexpr int kColumns = N + 8;
    // Distances of the tile begin here, and go down where rows are keys.
    const int first = t.position(t.row + 15, t.column);
    if ((kOfKeys ? first : first + N + 14) <= 1 - t.bias.positions) {  // all have the first entry
      float sum = 0;
#pragma unroll
      for (int i = 0; i < N / 2; ++i) sum += ds[i];
      sum = warp_sum(sum);
      if (is_first()) add_to_position(t.bias, t.head, 0, factor * sum);
      return;
    }
    const int lane = static_cast<int>(opaque(threadIdx.x)) % 32;
    float* const to = memory.elements + lane / 4 * kColumns + lane % 4 * 2;
#pragma unroll
    for (int m = 0; m <= N / 8; ++m) {
      float2 two = make_float2(0, 0);
      if (m > 0) two = make_float2(ds[4 * m - 4], ds[4 * m - 3]);
      if (m < N / 8) two.x += ds[m < N / 8 ? 4 * m + 2 : 0], two.y += ds[m < N / 8 ? 4 * m + 3 : 0];
      *reinterpret_cast<float2*>(to + 8 * m) = two;
    }
    __syncwarp();
#pragma unroll 1
    for (int i = 0; i < (N + 15 + 31) / 32; ++i) {
      const int diagonal = 32 * i + lane;  // of N + 15: column - row + 7 in memory
      float sum = 0;
#pragma unroll
      for (int r = 0; r < 8; ++r) {
        const int column = diagonal - 7 + r;
        if (column >= 0 && column < kColumns) sum += memory.elements[r * kColumns + column];
      }
      if (diagonal < N + 15)
        add_to_position(t.bias, t.head, position_entry(t.bias, first + (kOfKeys ? -diagonal : diagonal)),
                        factor * sum);
    }
    __syncwarp();
  }
};

}  // namespace hstu::cuda
