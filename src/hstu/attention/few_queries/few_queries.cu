#include "hstu/attention/cuda/jagged_rows.cuh"
#include "hstu/attention/cuda/samples.h"
#include "hstu/attention/few_queries/few_queries.h"
#include "hstu/device/cuda/launch.cuh"

namespace hstu::cuda {
namespace {

constexpr int kFewQueryWarps = 8, kFewQueryThreads = 32 * kFewQueryWarps;
constexpr int kAtOnce = 4;    // queries of a block at a time
constexpr int kElements = 8;  // of a lane: 16 bytes

template <typename T>
struct Problem {
  Samples samples;
  const std::int64_t* query_offsets;
  float alpha;
  Rows<const T> q, k, v, d_o;
};

template <typename T>
union Packed {
  uint4 words;
  T elements[kElements];
};
struct Fragment {
  float x[kElements];
};
template <typename T>
__device__ Packed<T> load(const T* at) {
  Packed<T> packed;
  packed.words = *reinterpret_cast<const uint4*>(at);
  return packed;
}
template <typename T>
__device__ Fragment unpack(const Packed<T>& packed) {
  Fragment f;
#pragma unroll
  for (int i = 0; i < kElements; ++i) f.x[i] = static_cast<float>(packed.elements[i]);
  return f;
}
template <typename T>
__device__ void store(const Output<T>& to, std::int64_t row, int head, int column, const float* x,
                      float scale) {
  T* const at = to.rows.at(row, head) + column;
  Packed<T> packed;
  if (to.accumulate) packed = load(static_cast<const T*>(at));
#pragma unroll
  for (int i = 0; i < kElements; ++i)
    packed.elements[i] =
        static_cast<T>(x[i] * scale + (to.accumulate ? static_cast<float>(packed.elements[i]) : 0.0f));
  *reinterpret_cast<uint4*>(at) = packed.words;
}

// The lanes that share a row of head size 8 * kLanes.
template <int kLanes>
struct Lanes {
  static constexpr int kRows = 32 / kLanes;  // of a warp
  int row, column;                           // this lane's row of the warp, and its first column
  std::uint32_t mask;                        // the lanes of the row
  __device__ Lanes()
      : row(threadIdx.x % 32 / kLanes),
        column(threadIdx.x % kLanes * kElements),
        mask(kLanes == 32 ? 0xffffffffu : ((1u << (kLanes % 32)) - 1) << (row * kLanes)) {}
  __device__ float dot(const Fragment& a, const Fragment& b) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kElements; ++i) sum = fmaf(a.x[i], b.x[i], sum);
#pragma unroll
    for (int step = kLanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(mask, sum, step);
    return sum;
  }
};

__device__ Silu silu(float x) {
  return silu_of(x, 1.0f / (1.0f + __expf(-x)));
}

// A sample. Its token i is row first_token + i of k and v, and row first_query + i of q and o from token
// `queries_from` on.
struct Sample {
  SampleMask mask;
  std::int64_t first_token, first_query;
  int queries_from;
  float scale;
};
template <typename T>
__device__ Sample sample_at(const Problem<T>& p, int b) {
  const Samples& s = p.samples;
  Sample sample;
  sample.first_token = s.offsets[b];
  const int n = static_cast<int>(s.offsets[b + 1] - sample.first_token);
  sample.queries_from = n - static_cast<int>(p.query_offsets[b + 1] - p.query_offsets[b]);
  sample.first_query = p.query_offsets[b] - sample.queries_from;
  sample.mask = sample_mask(n, s.contexts != nullptr ? s.contexts[b] : 0,
                            s.targets != nullptr ? s.targets[b] : 0, s.group, s.left, s.right);
  sample.scale = s.common_scale * (s.scale != nullptr ? s.scale[b] : 1.0f);
  return sample;
}

// O, or dQ: a block has a head of a sample, and its warps share out the keys.
template <typename T, int kLanes, bool kGradient>
__global__ void __launch_bounds__(kFewQueryThreads) of_queries(Problem<T> p, Output<T> out) {
  wait_for_previous_launch();
  constexpr int kWidth = kLanes * kElements, kGroups = kFewQueryWarps * Lanes<kLanes>::kRows;
  const Lanes<kLanes> lanes;
  const int head = blockIdx.y, group = static_cast<int>(threadIdx.x) / 32 * Lanes<kLanes>::kRows + lanes.row;
  const Sample sample = sample_at(p, blockIdx.x);
  const int n = sample.mask.n;
  if (sample.queries_from < 0) return;  // not valid
  __shared__ float sums[kFewQueryWarps][kAtOnce][kWidth];
  for (int first = sample.queries_from; first < n; first += kAtOnce) {
    Fragment query[kAtOnce], gradient[kAtOnce], sum[kAtOnce];
    Intervals keys[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int token = smaller(first + i, n - 1);
      query[i] = unpack(load(p.q.at(sample.first_query + token, head) + lanes.column));
      if constexpr (kGradient)
        gradient[i] = unpack(load(p.d_o.at(sample.first_query + token, head) + lanes.column));
      keys[i] = first + i < n ? keys_of_query(sample.mask, token) : Intervals{0, 0, 0, 0, 0};
#pragma unroll
      for (int e = 0; e < kElements; ++e) sum[i].x[e] = 0;
    }
    const auto visit = [&](int j) {
      const Packed<T> packed_key = load(p.k.at(sample.first_token + j, head) + lanes.column),
                      packed_value = load(p.v.at(sample.first_token + j, head) + lanes.column);
      const Fragment key = unpack(packed_key), value = unpack(packed_value);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (!keys[i].contains(j)) continue;  // all lanes of the row alike
        const Silu s = silu(p.alpha * lanes.dot(query[i], key));
        float factor = s.value;
        if constexpr (kGradient) factor = s.slope * lanes.dot(gradient[i], value);
#pragma unroll
        for (int e = 0; e < kElements; ++e)
          sum[i].x[e] = fmaf(factor, kGradient ? key.x[e] : value.x[e], sum[i].x[e]);
      }
    };
    const Intervals any = keys_of_queries(sample.mask, first, smaller(first + kAtOnce, n)).any;
    for (int j = group; j < any.end0; j += kGroups) visit(j);
    for (int j = larger(any.lo1, any.end0) + group; j < any.hi1; j += kGroups) visit(j);
    for (int j = larger(any.lo2, larger(any.end0, any.hi1)) + group; j < any.hi2; j += kGroups) visit(j);

      // The rows of a warp, then the warps, each in a fixed order.
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
      for (int e = 0; e < kElements; ++e) {
#pragma unroll
        for (int step = kLanes; step < 32; step *= 2)
          sum[i].x[e] += __shfl_xor_sync(0xffffffffu, sum[i].x[e], step);
        if (lanes.row == 0) sums[threadIdx.x / 32][i][lanes.column + e] = sum[i].x[e];
      }
    }
    __syncthreads();
    for (int piece = threadIdx.x; piece < kAtOnce * kLanes; piece += kFewQueryThreads) {
      const int i = piece / kLanes, column = piece % kLanes * kElements;
      if (first + i >= n) continue;
      float total[kElements] = {};
      for (int w = 0; w < kFewQueryWarps; ++w)
        for (int e = 0; e < kElements; ++e) total[e] += sums[w][i][column + e];
      store(out, sample.first_query + first + i, head, column, total,
            kGradient ? sample.scale * p.alpha : sample.scale);
    }
    __syncthreads();
  }
}

// dK and dV: a block has kKeys neighbouring rows of one head.
constexpr int kKeysOfGroup = 4;
template <typename T, int kLanes>
__global__ void __launch_bounds__(kFewQueryThreads) of_keys(Problem<T> p, Output<T> dk, Output<T> dv) {
  wait_for_previous_launch();
  constexpr int kGroups = kFewQueryWarps * Lanes<kLanes>::kRows;
  const Lanes<kLanes> lanes;
  const int head = blockIdx.y, group = static_cast<int>(threadIdx.x) / 32 * Lanes<kLanes>::kRows + lanes.row;
  const std::int64_t* const offsets = p.samples.offsets;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kGroups * kKeysOfGroup;
  if (begin + kGroups * kKeysOfGroup <= offsets[0]) return;
  int b = 0, high = p.samples.count;  // of the block's first row: offsets[b] <= begin < offsets[high]
  while (high - b > 1) {
    const int middle = (b + high) / 2;
    (offsets[middle] <= begin ? b : high) = middle;
  }
  for (int turn = 0; turn < kKeysOfGroup; ++turn) {
    const std::int64_t row = begin + turn * kGroups + group;
    if (row < offsets[0]) continue;
    while (b < p.samples.count && offsets[b + 1] <= row) ++b;
    if (b == p.samples.count) return;
    const Packed<T> packed_key = load(p.k.at(row, head) + lanes.column),
                    packed_value = load(p.v.at(row, head) + lanes.column);
    const Sample sample = sample_at(p, b);
    const Fragment key = unpack(packed_key), value = unpack(packed_value);
    float key_sum[kElements] = {}, value_sum[kElements] = {};
    const auto visit = [&](int i) {
      const Fragment query = unpack(load(p.q.at(sample.first_query + i, head) + lanes.column)),
                     gradient = unpack(load(p.d_o.at(sample.first_query + i, head) + lanes.column));
      const Silu s = silu(p.alpha * lanes.dot(query, key));
      const float slope = s.slope * lanes.dot(gradient, value);
#pragma unroll
      for (int e = 0; e < kElements; ++e) {
        value_sum[e] = fmaf(s.value, gradient.x[e], value_sum[e]);
        key_sum[e] = fmaf(slope, query.x[e], key_sum[e]);
      }
    };
    const Intervals queries = queries_of_key(sample.mask, static_cast<int>(row - sample.first_token));
    const int from = larger(0, sample.queries_from);
    for (int i = from; i < queries.end0; ++i) visit(i);
    for (int i = larger(queries.lo1, from); i < queries.hi1; ++i) visit(i);
    for (int i = larger(queries.lo2, from); i < queries.hi2; ++i) visit(i);
    store(dk, row, head, lanes.column, key_sum, sample.scale * p.alpha);
    store(dv, row, head, lanes.column, value_sum, sample.scale);
  }
}

// Calls body.template operator()<T, lanes of a row>().
template <typename Body>
void with_lanes(const AttentionProblem& p, const Body& body) {
  using T = __nv_bfloat16;
  if (p.head_dim == 32)
    body.template operator()<T, 4>();
  else if (p.head_dim == 64)
    body.template operator()<T, 8>();
  else if (p.head_dim == 128)
    body.template operator()<T, 16>();
  else
    body.template operator()<T, 32>();
}

template <typename T>
Problem<T> problem_of(const AttentionProblem& p, const AttentionInput& d_o) {
  return {samples_of(p),   p.offsets_of_queries(), static_cast<float>(p.alpha),
          rows_of<T>(p.q), rows_of<T>(p.k),        rows_of<T>(p.v),
          rows_of<T>(d_o)};
}

dim3 blocks_of_queries(const AttentionProblem& p) {
  return {static_cast<unsigned>(p.samples), static_cast<unsigned>(p.heads)};
}

}  // namespace

void few_queries_forward(const AttentionProblem& p, const AttentionRows& o, cudaStream_t stream) {
  if (p.query_rows() == 0) return;
  with_lanes(p, [&]<typename T, int kLanes>() {
    launch("attention of few queries, forward", of_queries<T, kLanes, false>, blocks_of_queries(p),
           kFewQueryThreads, stream, problem_of<T>(p, {}), output_of<T>(o, false));
  });
}

void few_queries_backward(const AttentionProblem& p, const AttentionGradients& g, cudaStream_t stream) {
  constexpr const char* kWhat = "attention of few queries, backward";
  with_lanes(p, [&]<typename T, int kLanes>() {
    const Problem<T> problem = problem_of<T>(p, g.d_o);
    if (p.query_rows() > 0) {
      launch(kWhat, of_queries<T, kLanes, true>, blocks_of_queries(p), kFewQueryThreads, stream, problem,
             output_of<T>(g.dq, g.accumulate_dq));
    }
    constexpr std::int64_t kKeys = kFewQueryWarps * Lanes<kLanes>::kRows * kKeysOfGroup;
    const dim3 blocks(static_cast<unsigned>((p.tokens + kKeys - 1) / kKeys), static_cast<unsigned>(p.heads));
    launch(kWhat, of_keys<T, kLanes>, blocks, kFewQueryThreads, stream, problem,
           output_of<T>(g.dk, g.accumulate_dkv), output_of<T>(g.dv, g.accumulate_dkv));
  });
}

}  // namespace hstu::cuda
