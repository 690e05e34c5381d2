// The forward pass whose rows depend on nothing but their own keys (row_stable), and of few queries with
// cached keys: a block computes a row of one head. Its threads share out the keys by their number among those
// that the row sees, wherever they are: tiles would divide them by where the row is in its sample, or by what
// is cached. Keys and values come from the L2 cache, once for each row.
#include "hstu/attention/cuda/jagged_rows.cuh"
#include "hstu/attention/cuda/samples.h"
#include "hstu/attention/plain/cached_rows.cuh"
#include "hstu/attention/plain/place.cuh"
#include "hstu/attention/plain/plain.h"
#include "hstu/device/cuda/launch.cuh"

namespace hstu::cuda {
namespace {

constexpr int kRowWarps = 8, kRowThreads = 32 * kRowWarps;
constexpr int kRowElements = 8;    // of a row, in each of its lanes
constexpr int kRowKeysAtOnce = 4;  // keys that a lane reads before it computes

template <typename T>
struct SingleRows {
  Samples samples;
  const std::int64_t* query_offsets;
  float alpha;
  int head_dim;
  bool softmax;
  Rows<const T> q, k, v;
  CachedRows<T> past;
  Bias bias;  // no tables: none
  Rows<T> o;
};

// Elements of a row from `column` on; zeros beyond its end. kPieces: they can be read 16 bytes at a time.
template <bool kPieces, typename T>
__device__ __forceinline__ void read_row(float (&x)[kRowElements], const T* row, int column, int head_dim) {
  if constexpr (kPieces) {
    union {
      uint4 words[sizeof(T) * kRowElements / 16];
      T elements[kRowElements];
    } piece = {};
    if (column < head_dim) {
#pragma unroll
      for (int i = 0; i < static_cast<int>(sizeof(T) * kRowElements / 16); ++i)
        piece.words[i] = reinterpret_cast<const uint4*>(row + column)[i];
    }
#pragma unroll
    for (int i = 0; i < kRowElements; ++i) x[i] = static_cast<float>(piece.elements[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kRowElements; ++i)
      x[i] = column + i < head_dim ? static_cast<float>(row[column + i]) : 0.0f;
  }
}

// The sample that has the row, or -1.
__device__ int sample_of(const std::int64_t* offsets, int samples, std::int64_t row) {
  if (row < offsets[0] || row >= offsets[samples]) return -1;
  int low = 0, high = samples;  // offsets[low] <= row < offsets[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (offsets[middle] <= row ? low : high) = middle;
  }
  return low;
}

// Values of some keys times their weights and, of a softmax, the weights' sum; both relative to e^largest.
struct WeightedValues {
  float of[kRowElements] = {}, largest = 0, sum = 0;

  __device__ __forceinline__ void add(float weight, const float (&value)[kRowElements]) {
#pragma unroll
    for (int i = 0; i < kRowElements; ++i) of[i] = fmaf(weight, value[i], of[i]);
  }
  // Makes all of it relative to the larger one of e^largest and e^other.
  __device__ __forceinline__ void raise(float other) {
    const float most = fmaxf(largest, other), factor = largest == most ? 1.0f : expf(largest - most);
    largest = most, sum *= factor;
#pragma unroll
    for (float& x : of) x *= factor;
  }
};

// A row of a block: its keys are tokens of its sample with those of its past.
struct SeenKeys {
  Intervals seen;
  int of_first, of_two, count;  // keys in the first interval, in the first two, in all

  __device__ explicit SeenKeys(const Intervals& keys)
      : seen(keys),
        of_first(larger(0, keys.end0)),
        of_two(of_first + larger(0, keys.hi1 - keys.lo1)),
        count(of_two + larger(0, keys.hi2 - keys.lo2)) {}
  // The token of key i of `count`, ascending.
  __device__ __forceinline__ int token(int i) const {
    return i < of_first ? i : i < of_two ? seen.lo1 + i - of_first : seen.lo2 + i - of_two;
  }
};

// kLanes lanes share a row, and a warp has 32 / kLanes of them.
template <typename T, int kLanes, bool kPieces>
__global__ void __launch_bounds__(kRowThreads) single_rows(const __grid_constant__ SingleRows<T> p) {
  constexpr int kWidth = kRowElements * kLanes, kGroups = kRowThreads / kLanes;
  __shared__ float sums[kRowWarps][kWidth], largest[kRowWarps], weights[kRowWarps];
  wait_for_previous_launch();
  const std::int64_t row = blockIdx.x;
  const int head = blockIdx.y;
  const Samples& s = p.samples;
  const int b = sample_of(p.query_offsets, s.count, row);
  if (b < 0) return;  // all threads alike, as below
  const PastOfSample past(p.past, b);
  const std::int64_t first = s.offsets[b] - past.tokens;
  const int n = static_cast<int>(s.offsets[b + 1] - first);
  const int token = s.query_first != nullptr
                        ? past.tokens + s.query_first[b] + static_cast<int>(row - p.query_offsets[b])
                        : n - static_cast<int>(p.query_offsets[b + 1] - row);
  if (token < past.tokens || token >= n) return;  // queries that are not tokens are not valid
  const SeenKeys keys(keys_of_query(mask_of(s, b, n), token));
  const CachedBias bias{p.bias, head};
  const std::int64_t query_time = bias.query_time(row);

  const int column = static_cast<int>(threadIdx.x) % kLanes * kRowElements,
            group = static_cast<int>(threadIdx.x) / kLanes;
  const std::uint32_t group_mask =
      kLanes == 32 ? 0xffffffffu : ((1u << (kLanes % 32)) - 1) << (threadIdx.x % 32 / kLanes * kLanes);
  float query[kRowElements];
  read_row<kPieces>(query, p.q.at(row, head), column, p.head_dim);
  WeightedValues sum;
  if (p.softmax) sum.largest = -INFINITY;
  for (int begin = group; begin < keys.count; begin += kGroups * kRowKeysAtOnce) {
    float key[kRowKeysAtOnce][kRowElements], value[kRowKeysAtOnce][kRowElements], added[kRowKeysAtOnce];
#pragma unroll
    for (int i = 0; i < kRowKeysAtOnce; ++i) {
      const int at = keys.token(smaller(begin + i * kGroups, keys.count - 1));
      const bool is_past = at < past.tokens;
      const std::int64_t key_row = is_past ? past.row(p.past, at) : first + at;
      read_row<kPieces>(key[i], (is_past ? p.past.k : p.k).at(key_row, head), column, p.head_dim);
      read_row<kPieces>(value[i], (is_past ? p.past.v : p.v).at(key_row, head), column, p.head_dim);
      added[i] = 0;
      if (!bias.any()) continue;
      const std::int64_t time = p.bias.time == nullptr ? 0
                                : is_past              ? p.past.time[key_row]
                                                       : p.bias.keys.times[key_row];
      added[i] = bias.of(bias.pair(at - token, query_time, time));
    }
#pragma unroll
    for (int i = 0; i < kRowKeysAtOnce; ++i) {
      if (begin + i * kGroups >= keys.count) break;  // all lanes of the group alike
      float score = 0;
#pragma unroll
      for (int e = 0; e < kRowElements; ++e) score = fmaf(query[e], key[i][e], score);
#pragma unroll
      for (int step = kLanes / 2; step > 0; step /= 2) score += __shfl_xor_sync(group_mask, score, step);
      score = fmaf(p.alpha, score, added[i]);
      float weight;
      if (p.softmax) {
        sum.raise(score);
        weight = expf(score - sum.largest);
        sum.sum += weight;
      } else {
        weight = silu_of(score, 1.0f / (1.0f + expf(-score))).value;
      }
      sum.add(weight, value[i]);
    }
  }
  // The groups of a warp, then the warps, each in a fixed order.
#pragma unroll
  for (int step = kLanes; step < 32; step *= 2) {
    if (p.softmax) {  // both become relative to the same number
      sum.raise(__shfl_xor_sync(0xffffffffu, sum.largest, step));
      sum.sum += __shfl_xor_sync(0xffffffffu, sum.sum, step);
    }
#pragma unroll
    for (float& x : sum.of) x += __shfl_xor_sync(0xffffffffu, x, step);
  }
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x % 32 < kLanes) {
#pragma unroll
    for (int e = 0; e < kRowElements; ++e) sums[warp][column + e] = sum.of[e];
    if (threadIdx.x % 32 == 0) largest[warp] = sum.largest, weights[warp] = sum.sum;
  }
  __syncthreads();
  const int own = static_cast<int>(threadIdx.x);
  if (own >= p.head_dim) return;
  float most = largest[0], total = 0, all = 0;
  for (int w = 1; w < kRowWarps; ++w) most = fmaxf(most, largest[w]);
  for (int w = 0; w < kRowWarps; ++w) {
    const float factor = largest[w] == most ? 1.0f : expf(largest[w] - most);
    total = fmaf(factor, sums[w][own], total), all = fmaf(factor, weights[w], all);
  }
  float scale = s.common_scale * (s.scale != nullptr ? s.scale[b] : 1.0f);
  if (p.softmax) scale = all > 0 ? scale / all : 0.0f;
  p.o.at(row, head)[own] = static_cast<T>(total * scale);
}

template <typename T>
bool has_pieces(const AttentionInput& rows) {
  constexpr std::int64_t kPiece = 16 / sizeof(T);
  return reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0 && rows.row_stride % kPiece == 0 &&
         rows.head_stride % kPiece == 0;
}

template <typename T>
void launch_single_rows(const AttentionProblem& p, const AttentionRows& o, const Bias* bias,
                        cudaStream_t stream) {
  const SingleRows<T> rows{.samples = samples_of(p),
                           .query_offsets = p.offsets_of_queries(),
                           .alpha = static_cast<float>(p.alpha),
                           .head_dim = static_cast<int>(p.head_dim),
                           .softmax = p.score == ScoreFunction::softmax,
                           .q = rows_of<T>(p.q),
                           .k = rows_of<T>(p.k),
                           .v = rows_of<T>(p.v),
                           .past = cached_rows<T>(p.past),
                           .bias = bias != nullptr ? *bias : Bias(),
                           .o = {static_cast<T*>(o.data), o.row_stride, o.head_stride}};
  const AttentionInput past_k{p.past.k, p.past.row_stride, p.past.head_stride},
      past_v{p.past.v, p.past.row_stride, p.past.head_stride};
  bool pieces = p.head_dim % kRowElements == 0;
  for (const AttentionInput& read : {p.q, p.k, p.v, past_k, past_v}) pieces = pieces && has_pieces<T>(read);
  const auto launch_with = [&]<int kLanes>() {
    launch("attention by single rows", pieces ? single_rows<T, kLanes, true> : single_rows<T, kLanes, false>,
           dim3(static_cast<unsigned>(p.query_rows()), static_cast<unsigned>(p.heads)), kRowThreads, stream,
           rows);
  };
  if (p.head_dim <= 8)
    launch_with.template operator()<1>();
  else if (p.head_dim <= 32)
    launch_with.template operator()<4>();
  else if (p.head_dim <= 64)
    launch_with.template operator()<8>();
  else if (p.head_dim <= 128)
    launch_with.template operator()<16>();
  else
    launch_with.template operator()<32>();
}

}  // namespace

void single_rows_forward(const AttentionProblem& p, const AttentionRows& o, const Bias* bias,
                         cudaStream_t stream) {
  if (p.query_rows() == 0) return;
  if (p.type == AttentionType::bf16)
    launch_single_rows<__nv_bfloat16>(p, o, bias, stream);
  else if (p.type == AttentionType::fp16)
    launch_single_rows<__half>(p, o, bias, stream);
  else
    launch_single_rows<float>(p, o, bias, stream);
}

}  // namespace hstu::cuda
