// The arithmetic of attention pair by pair, with a softmax or SiLU. A block has kSoftmaxOwn rows of one head
// of one sample, each warp a few of them, and reads the rows that they meet through shared memory,
// kSoftmaxOther at a time: a lane has one of these while scores are computed, and some columns while they are
// added up.
#pragma once

#include "hstu/attention/cuda/jagged_rows.cuh"
#include "hstu/attention/hidden_keys.h"
#include "hstu/attention/plain/cached_rows.cuh"
#include "hstu/attention/plain/place.cuh"
#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/random.cuh"
#include "hstu/kernels/cuda/dropout.cuh"

namespace hstu::cuda {

inline constexpr int kSoftmaxOwn = 16, kSoftmaxOther = 32;
inline constexpr int kSoftmaxEach = kSoftmaxOwn / (kPlainThreads / 32);  // own rows of a warp

// What the gradients need of a query and a head: log(sum of e^score), and the mean of the slopes by the
// weights.
struct SoftmaxRow {
  float log_sum = 0, mean = 0;
};

template <typename T>
struct SoftmaxArguments {
  Samples samples;
  const std::int64_t* query_offsets;
  Rows<const T> q, k, v, d_o;
  Rows<T> o, dq, dk, dv;
  CachedRows<T> past;
  Bias bias;  // no tables: none
  HiddenKeys hidden;
  std::int32_t silu;  // in place of the softmax
  float alpha;
  std::int32_t head_dim;
  std::int32_t accumulate_dq, accumulate_dkv;
  std::int32_t drops;
  std::uint64_t dropout_key;
  kernels::cuda::DropoutRows dropout;
  SoftmaxRow* rows;  // (Tq, H)
};

template <int kD>
struct SoftmaxLayout {
  static constexpr int kStride = kD + 4;    // lanes that read different rows find them in different banks
  static constexpr int kColumns = kD / 32;  // of a lane
  static constexpr int kOwnFloats = kSoftmaxOwn * kStride, kOtherFloats = kSoftmaxOther * kStride;
  static constexpr int kForwardBytes = 4 * (kOwnFloats + 2 * kOtherFloats);
  static constexpr int kBackwardBytes = 4 * 2 * (kOwnFloats + kOtherFloats);
};

__device__ inline float softmax_warp_sum(float x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}
__device__ inline float softmax_warp_max(float x) {
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

// `count` rows, of which row_at(i) is the address of the first element, and zeros in place of the others of
// kRows.
template <int kRows, int kD, typename RowAt>
__device__ void softmax_fill_rows(float* to, int count, int head_dim, const RowAt& row_at) {
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kD; i += kPlainThreads) {
    const int row = i / kD, column = i % kD;
    to[row * SoftmaxLayout<kD>::kStride + column] =
        row < count && column < head_dim ? static_cast<float>(row_at(row)[column]) : 0.0f;
  }
}
// Rows of the batch from row `first` on.
template <int kRows, int kD, typename T>
__device__ void softmax_fill(float* to, const Rows<const T>& from, std::int64_t first, int count, int head,
                             int head_dim) {
  softmax_fill_rows<kRows, kD>(to, count, head_dim, [&](int row) { return from.at(first + row, head); });
}

template <int kD>
__device__ float softmax_dot(const float* a, const float* b) {
  float sum[4] = {};
#pragma unroll 8
  for (int c = 0; c < kD; c += 4) {
    const float4 x = *reinterpret_cast<const float4*>(a + c), y = *reinterpret_cast<const float4*>(b + c);
    sum[0] = fmaf(x.x, y.x, sum[0]), sum[1] = fmaf(x.y, y.y, sum[1]);
    sum[2] = fmaf(x.z, y.z, sum[2]), sum[3] = fmaf(x.w, y.w, sum[3]);
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Columns lane, lane + 32, ... of a row's sums.
template <int kD>
struct SoftmaxSums {
  float column[SoftmaxLayout<kD>::kColumns] = {};

  __device__ void scale(float factor) {
    for (float& x : column) x *= factor;
  }
  // Adds the rows of a tile, each times the weight that its lane has.
  __device__ void add(float weight, const float* rows) {
#pragma unroll 4
    for (int j = 0; j < kSoftmaxOther; ++j) {
      const float w = __shfl_sync(0xffffffffu, weight, j);
      const float* const row = rows + j * SoftmaxLayout<kD>::kStride + threadIdx.x % 32;
#pragma unroll
      for (int c = 0; c < SoftmaxLayout<kD>::kColumns; ++c) column[c] = fmaf(w, row[32 * c], column[c]);
    }
  }
  template <typename T>
  __device__ void write(T* row, int head_dim, float factor, bool accumulate) const {
#pragma unroll
    for (int c = 0; c < SoftmaxLayout<kD>::kColumns; ++c) {
      const int at = static_cast<int>(threadIdx.x % 32) + 32 * c;
      if (at >= head_dim) continue;
      const float x = factor * column[c];
      row[at] = static_cast<T>(accumulate ? x + static_cast<float>(row[at]) : x);
    }
  }
};

// Factors of the weights of one head.
template <typename T>
class SoftmaxDropout {
 public:
  __device__ SoftmaxDropout(const SoftmaxArguments<T>& a, int head)
      : drops_(a.drops != 0),
        rows_(a.dropout.with_key(mix64(a.dropout_key + static_cast<std::uint64_t>(head)))) {}

  __device__ std::uint64_t row(std::int64_t query_row) const { return drops_ ? rows_.row(query_row) : 0; }
  // Of the sample's token `key` in a row.
  __device__ float factor(std::uint64_t row, int key) const {
    if (!drops_) return 1;
    return rows_.factor((rows_.kept(row, key & ~7) >> (key & 7) & 1) != 0);
  }

 private:
  bool drops_;
  kernels::cuda::DropoutRows rows_;
};

// The rows of a block. Tokens of a sample are counted with those of its past, which are its first keys.
struct SoftmaxBlock {
  PlainPlace place;
  bool of_keys;
  int head, rows, token;  // own rows; the first is the sample's token `token`
  std::int64_t first;     // and row `first` of the batch
  HiddenKeys hidden;
  PastOfSample past;

  template <typename T>
  __device__ SoftmaxBlock(const SoftmaxArguments<T>& a, bool keys)
      : place(plain_place<kSoftmaxOwn>(a.samples, a.query_offsets, keys ? a.samples.offsets : a.query_offsets,
                                       keys)),
        of_keys(keys),
        head(static_cast<int>(blockIdx.y)),
        hidden(a.hidden) {
    if (place.found) add_past(a);
    rows = smaller(kSoftmaxOwn, own().count - place.begin);
    token = own().from + place.begin;
    first = static_cast<std::int64_t>(own().first_row) + place.begin;
  }
  __device__ const SampleRows& own() const { return of_keys ? place.keys : place.queries; }
  __device__ const SampleRows& other() const { return of_keys ? place.queries : place.keys; }
  __device__ static int warp_row(int e) { return static_cast<int>(threadIdx.x / 32) * kSoftmaxEach + e; }
  // Whether own row `r` and the other token meet.
  __device__ bool sees(int r, int other_token) const {
    if (r >= rows) return false;
    const Intervals seen =
        of_keys ? queries_of_key(place.mask, token + r) : keys_of_query(place.mask, token + r);
    const int query = of_keys ? other_token : token + r, key = of_keys ? token + r : other_token;
    return seen.contains(other_token) && !hidden.hide(place.mask.c, query, key);
  }
  // The sample's keys, or values, from token `begin` on: those of its past are in pages.
  template <int kD, typename T>
  __device__ void fill_keys(float* to, const Rows<const T>& own_rows, const CachedRows<T>& cached,
                            const Rows<const T>& cached_rows, int begin, int count, int head_dim) const {
    softmax_fill_rows<kSoftmaxOther, kD>(to, count, head_dim, [&](int row) {
      const int at = begin + row;
      return at < past.tokens ? cached_rows.at(past.row(cached, at), head)
                              : own_rows.at(static_cast<std::int64_t>(place.keys.first_row) + at, head);
    });
  }
  // The time of the sample's key `at`, for a block of queries; 0 without a time table.
  template <typename T>
  __device__ std::int64_t key_time(const SoftmaxArguments<T>& a, int at) const {
    if (a.bias.time == nullptr) return 0;
    return at < past.tokens ? a.past.time[past.row(a.past, at)]
                            : a.bias.keys.times[static_cast<std::int64_t>(place.keys.first_row) + at];
  }
  // Calls body(first other row of the tile, counted in the sample's; their number) for the tiles that an own
  // row may meet.
  template <typename Body>
  __device__ void for_tiles(const Body& body) const {
    Intervals any = (of_keys ? queries_of_keys(place.mask, token, token + rows)
                             : keys_of_queries(place.mask, token, token + rows))
                        .any;
    const int from = other().from, count = other().count;
    any = {smaller(any.end0 - from, count), any.lo1 - from, smaller(any.hi1 - from, count), any.lo2 - from,
           smaller(any.hi2 - from, count)};
    any.lo1 = larger(any.lo1, 0), any.lo2 = larger(any.lo2, 0);
    const BlockWalk walk(any, kSoftmaxOther);
    for (int step = 0; step < walk.count(); ++step) {
      const int begin = walk[step] * kSoftmaxOther;
      __syncthreads();  // the tile before has been read
      body(begin, smaller(kSoftmaxOther, count - begin));
    }
  }

 private:
  template <typename T>
  __device__ void add_past(const SoftmaxArguments<T>& a) {
    past = PastOfSample(a.past, place.sample);
    if (past.tokens == 0) return;
    place.mask = mask_of(a.samples, place.sample, place.mask.n + past.tokens);
    place.queries.from += past.tokens;
    if (of_keys) {  // the past has no gradients
      place.keys.from = past.tokens;
    } else {
      place.keys.first_row -= past.tokens;
      place.keys.count += past.tokens;
    }
  }
};

__device__ inline Silu softmax_silu(float x) {
  return silu_of(x, 1.0f / (1.0f + expf(-x)));
}

// A running softmax of one query, of which all lanes of a warp know the same.
struct RunningSoftmax {
  float largest = -INFINITY, sum = 0;

  // Takes a lane's score, -infinity for none; the weight relative to `largest`, and in `before` the factor of
  // what was summed until now.
  __device__ float take(float score, float& before) {
    const float most = fmaxf(largest, softmax_warp_max(score));
    before = largest == most ? 1.0f : expf(largest - most);
    largest = most;
    const float weight = most == -INFINITY ? 0.0f : expf(score - most);
    sum = sum * before + softmax_warp_sum(weight);
    return weight;
  }
  __device__ float log_sum() const { return largest + logf(sum); }
};

}  // namespace hstu::cuda
