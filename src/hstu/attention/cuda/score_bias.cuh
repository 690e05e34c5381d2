// The relative bias of scores in the registers of a warp. Of 16 rows by N columns a thread has the elements
// that cuda/accumulator.cuh describes.
//
// Neighbouring pairs are mostly in one bucket of distances in time, so that 16 rows and 32 columns are taken
// together: the smallest and the largest time of the rows and of the columns bound the distances. If all are
// in one bucket, the term is one number; in few, a time is compared with one limit for each row and bucket;
// otherwise each element looks its bucket up. No order of the times is assumed.
#pragma once

#include <cstdint>

#include "hstu/attention/cuda/bias.cuh"
#include "hstu/device/cuda/ptx.cuh"

namespace hstu::cuda {

// Scores of rows of one sample. kOfKeys: the rows of the accumulator are keys and its columns queries.
template <bool kOfKeys>
struct ScoreTile {
  const Bias& bias;
  int head;
  int begin, n;  // of the sample: its first row, its tokens
  int row;       // the token of the warp's first row
  int column;    // the token of the first column

  __device__ __forceinline__ const Ticks& own() const { return kOfKeys ? bias.keys : bias.queries; }
  __device__ __forceinline__ const Ticks& other() const { return kOfKeys ? bias.queries : bias.keys; }
  // The token of this thread's first row, the second is 8 on; and of its first column of 32.
  // (Computed each time, because registers are scarce.)
  __device__ __forceinline__ int thread_row() const {
    return row + static_cast<int>(opaque(threadIdx.x)) % 32 / 4;
  }
  __device__ __forceinline__ int thread_column(int group) const {
    return column + 32 * group + 2 * static_cast<int>(opaque(threadIdx.x) % 4);
  }
  // The index in the batch of a token, or of the sample's last.
  __device__ __forceinline__ int at(int token) const { return begin + smaller(token, n - 1); }
  // The distance in tokens from query to key.
  __device__ __forceinline__ int position(int own_token, int other_token) const {
    return kOfKeys ? own_token - other_token : other_token - own_token;
  }
};

// Element i of the 8 that a thread has of one of its two rows in 32 columns; and its column.
__device__ __forceinline__ constexpr int element_of_row(int i, int second) {
  return i / 2 * 4 + second * 2 + i % 2;
}
__device__ __forceinline__ constexpr int column_of_element(int i) {
  return i / 2 * 8 + i % 2;
}

// Reads at this place: the compiler moves other reads to where they are used, behind the wait for a product,
// or out of a loop.
__device__ __forceinline__ float read_now(const float* from) {
  float x;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(x) : "l"(from));
  return x;
}
__device__ __forceinline__ std::int64_t read_now(const std::int64_t* from) {
  std::int64_t x;
  asm volatile("ld.volatile.global.s64 %0, [%1];" : "=l"(x) : "l"(from));
  return x;
}

// The terms by position of a thread, halved: one for each of its diagonals.
template <int N, bool kOfKeys>
struct PositionTerms {
  float of[N / 8 + 1][2];  // [m + 1][e]: of the first row and column 8 m + e, and of 8 rows and columns on

  __device__ __forceinline__ explicit PositionTerms(const ScoreTile<kOfKeys>& t) : of{} {
    if (t.bias.position == nullptr) return;
    const int most = t.bias.positions - 1;
    const int first = t.position(t.thread_row(), t.thread_column(0));
    const float* const table = position_table(t.bias, t.head) + most;
    constexpr int kSign = kOfKeys ? -1 : 1;
    const int nearest = t.position(t.row, t.column);
    if (nearest - N - 15 >= -most && nearest + N + 15 <= most) {
#pragma unroll
      for (int m = -1; m < N / 8; ++m)
#pragma unroll
        for (int e = 0; e < 2; ++e) of[m + 1][e] = read_now(table + first + kSign * (8 * m + e));
    } else {
#pragma unroll
      for (int m = -1; m < N / 8; ++m)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          of[m + 1][e] = read_now(table + larger(-most, smaller(most, first + kSign * (8 * m + e))));
    }
  }
  // x = half_alpha x + the terms.
  __device__ __forceinline__ void add_to(float (&x)[N / 2], float half_alpha) const {
#pragma unroll
    for (int m = 0; m < N / 8; ++m)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        x[4 * m + e] = fmaf(x[4 * m + e], half_alpha, of[m + 1][e]);
        x[4 * m + 2 + e] = fmaf(x[4 * m + 2 + e], half_alpha, of[m][e]);
      }
  }
};

// Up to kMostLimits neighbouring buckets after the first are told apart by limits, where all queries are at
// or after their keys; and all buckets where times need 64 bits.
inline constexpr int kMostLimits = 8;

// The buckets of a warp's rows against N columns, 32 at a time.
template <int N, bool kOfKeys>
struct WarpBuckets {
  static constexpr int kGroups = N / 32, kFar = 1 << 20, kBackwards = 1 << 17;
  int base[kGroups];   // the first bucket
  int range[kGroups];  // how far the last is from it; more: kBackwards or kFar

  // Zeros where the problem has no time table. Lanes look at one end of the distances of 32 columns each.
  __device__ __forceinline__ explicit WarpBuckets(const ScoreTile<kOfKeys>& t) : base{}, range{} {
    if (t.bias.time == nullptr) return;
    const int lane = static_cast<int>(opaque(threadIdx.x)) % 32, group = lane % kGroups;
    const int2 own = __ldg(t.own().short_spans + t.at(t.row));
    const int2 other = __ldg(t.other().spans + t.at(t.column + 32 * group));
    // From the latest key to the earliest query, and from the earliest key to the latest query.
    const int least = kOfKeys ? other.x - own.y : own.x - other.y;
    const int most = kOfKeys ? other.y - own.x : own.y - other.x;
    const bool low = lane / kGroups % 2 == 0, far = own.x > own.y || other.x > other.y;
    const int end = far ? 0 : low ? larger(0, larger(least, -most)) : larger(most, -least);
    int found = bucket_of(t.bias, end);
    if (!low) found = far ? t.bias.buckets + kFar : least < 0 ? found + kBackwards : found;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      base[g] = __shfl_sync(0xffffffffu, found, g);
      const int last = __shfl_sync(0xffffffffu, found, kGroups + g);
      range[g] = last - base[g] == kBackwards ? 0 : last - base[g];
    }
  }
  __device__ __forceinline__ bool is_far(int group) const {
    return range[group] >= kFar;
  }
  // Whether each element is looked up.
  __device__ __forceinline__ bool are_many(int group) const {
    return range[group] > kMostLimits && !is_far(group);
  }
  __device__ __forceinline__ int last(int group) const {
    return base[group] + (range[group] & (kBackwards - 1));
  }
};

// Compares the distances of a thread's 16 elements in 32 columns with thresholds.
template <bool kOfKeys>
struct FewBuckets {
  std::int32_t columns[8], rows[2];

  __device__ __forceinline__ FewBuckets(const ScoreTile<kOfKeys>& t, int group) {
    // Columns beyond the sample have any time: nothing depends on them.
    const std::int32_t* const from = t.other().of_rows + t.begin + t.thread_column(group);
#pragma unroll
    for (int i = 0; i < 8; ++i) columns[i] = __ldg(from + column_of_element(i));
#pragma unroll
    for (int second = 0; second < 2; ++second)
      rows[second] = __ldg(t.own().of_rows + t.at(t.thread_row() + 8 * second));
  }
  // Calls body(element, whether its distance is at least threshold k).
  template <typename Body>
  __device__ __forceinline__ void compare(const Bias& bias, int k, const Body& body) const {
    const std::int32_t step = __ldg(bias.steps + k);
#pragma unroll
    for (int second = 0; second < 2; ++second) {
      const std::int32_t limit = kOfKeys ? rows[second] + step : rows[second] - step;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        body(element_of_row(i, second), kOfKeys ? columns[i] >= limit : columns[i] <= limit);
    }
  }
};
template <bool kOfKeys, typename Body>
__device__ __forceinline__ void compare_far(const ScoreTile<kOfKeys>& t, int group, int k, const Body& body) {
  const std::int64_t step = __ldg(t.bias.thresholds + k);
#pragma unroll
  for (int second = 0; second < 2; ++second) {
    const std::int64_t own = __ldg(t.own().times + t.at(t.thread_row() + 8 * second));
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      // Read each time: registers are scarce.
      const std::int64_t* const other = t.other().times + t.at(t.thread_column(group) + column_of_element(i));
      body(element_of_row(i, second), distance_of(own, read_now(other)) >= step);
    }
  }
}
// The bucket of element i of the 16.
template <bool kOfKeys>
__device__ __forceinline__ int far_bucket(const ScoreTile<kOfKeys>& t, int group, int i) {
  const int own = t.at(t.thread_row() + i / 2 % 2 * 8),
            other = t.at(t.thread_column(group) + i / 4 * 8 + i % 2);
  return bucket_of_far(t.bias, distance_of(__ldg(t.own().times + own), __ldg(t.other().times + other)));
}
// Calls body(k, compare) for the thresholds between the buckets of a group that are not many, ascending;
// compare(each) is one of the two above.
template <int N, bool kOfKeys, typename Body>
__device__ __forceinline__ void for_each_threshold(const ScoreTile<kOfKeys>& t,
                                                   const WarpBuckets<N, kOfKeys>& buckets, int group,
                                                   const Body& body) {
  const int base = buckets.base[group], last = buckets.last(group);
  if (buckets.is_far(group)) {
#pragma unroll 1
    for (int k = base; k < last; ++k) body(k, [&](const auto& each) { compare_far(t, group, k, each); });
  } else {
    const FewBuckets<kOfKeys> few(t, group);
#pragma unroll 1
    for (int k = base; k < last; ++k) body(k, [&](const auto& each) { few.compare(t.bias, k, each); });
  }
}

// Calls body(element, bucket) for the 16 elements of 32 columns. Those of four columns are looked up
// together.
template <bool kOfKeys, typename Body>
__device__ __forceinline__ void look_up(const ScoreTile<kOfKeys>& t, int group, const Body& body) {
  const int column = t.thread_column(group);
  std::int32_t rows[2];
#pragma unroll
  for (int second = 0; second < 2; ++second)
    rows[second] = __ldg(t.own().of_rows + t.at(t.thread_row() + 8 * second));
#pragma unroll
  for (int first = 0; first < 8; first += 4) {
    std::int32_t distances[8];
    int found[8], several = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int32_t time = __ldg(t.other().of_rows + t.at(column + column_of_element(first + i)));
      distances[i] = abs(rows[0] - time), distances[i + 4] = abs(rows[1] - time);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int2 cell = __ldg(t.bias.classes + distance_class(distances[i]));
      found[i] = (cell.x & 0xffff) + (distances[i] >= cell.y ? 1 : 0);
      several |= cell.x;
    }
    if (several >= kSeveralThresholds) {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        while (distances[i] >= __ldg(t.bias.steps + found[i])) ++found[i];
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) body(element_of_row(first + i % 4, i / 4), found[i]);
  }
}

// Adds half of the terms by time to halves of scores.
template <int N, bool kOfKeys>
__device__ __forceinline__ void add_times(float (&x)[N / 2], const ScoreTile<kOfKeys>& t,
                                          const WarpBuckets<N, kOfKeys>& buckets) {
  if (t.bias.time == nullptr) return;
  const float* const table = time_table(t.bias, t.head);
#pragma unroll
  for (int group = 0; group < N / 32; ++group) {
    if (buckets.are_many(group)) {
      look_up(t, group, [&](int i, int bucket) { x[group * 16 + i] += __ldg(table + bucket); });
      continue;
    }
    float term = __ldg(table + buckets.base[group]);
#pragma unroll
    for (int i = 0; i < 16; ++i) x[group * 16 + i] += term;
    if (buckets.range[group] == 0) continue;
    for_each_threshold(t, buckets, group, [&](int k, const auto& compare) {
      const float next = __ldg(table + k + 1), more = next - term;
      compare([&](int i, bool above) { x[group * 16 + i] += above ? more : 0.0f; });
      term = next;
    });
  }
}

// What the bias of a step needs, read before its scores are there.
template <int N, bool kOfKeys>
struct ReadBias {
  PositionTerms<N, kOfKeys> positions;
  WarpBuckets<N, kOfKeys> buckets;

  __device__ __forceinline__ explicit ReadBias(const ScoreTile<kOfKeys>& t) : positions(t), buckets(t) {}
  // Turns scores before alpha into halves of scores: half_alpha x + bias / 2.
  __device__ __forceinline__ void add_to(float (&x)[N / 2], const ScoreTile<kOfKeys>& t,
                                         float half_alpha) const {
    positions.add_to(x, half_alpha);
    add_times<N, kOfKeys>(x, t, buckets);
  }
};

}  // namespace hstu::cuda
