// The forward pass whose rows depend on nothing but their own keys (row_stable): a warp computes a row of one
// head, and goes through its keys in ascending order. Tiles would divide the keys by where the row is in its
// sample, and so would threads that share them out. Keys and values come from the L2 cache, once for each
// row.
#include "hstu/attention/cuda/jagged_rows.cuh"
#include "hstu/attention/cuda/samples.h"
#include "hstu/attention/plain/plain.h"
#include "hstu/device/cuda/launch.cuh"

namespace hstu::cuda {
namespace {

constexpr int kWarps = 8;

template <typename T>
struct SingleRows {
  Samples samples;
  const std::int64_t* query_offsets;
  float alpha;
  int head_dim;
  Rows<const T> q, k, v;
  Rows<T> o;
};

// The elements of a row that a lane has: lane, lane + 32, ...; zeros beyond its end.
template <int kEach, typename T>
__device__ void read_row(float (&x)[kEach], const T* row, int head_dim) {
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int column = static_cast<int>(threadIdx.x) % 32 + 32 * e;
    x[e] = column < head_dim ? static_cast<float>(row[column]) : 0.0f;
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

template <typename T, int kEach>
__global__ void __launch_bounds__(32 * kWarps) single_rows(const SingleRows<T> p) {
  wait_for_previous_launch();
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const int head = blockIdx.y;
  const Samples& s = p.samples;
  const int b = sample_of(p.query_offsets, s.count, row);
  if (b < 0) return;  // all lanes alike
  const std::int64_t first = s.offsets[b];
  const int n = static_cast<int>(s.offsets[b + 1] - first);
  const int token = s.query_first != nullptr ? s.query_first[b] + static_cast<int>(row - p.query_offsets[b])
                                             : n - static_cast<int>(p.query_offsets[b + 1] - row);
  if (token < 0 || token >= n) return;  // queries that are not tokens are not valid
  const SampleMask mask = sample_mask(n, s.contexts != nullptr ? s.contexts[b] : 0,
                                      s.targets != nullptr ? s.targets[b] : 0, s.group, s.left, s.right);
  const Intervals keys = keys_of_query(mask, token);

  float query[kEach], sum[kEach] = {};
  read_row(query, p.q.at(row, head), p.head_dim);
  const auto visit = [&](int begin, int end) {
#pragma unroll 4
    for (int j = begin; j < end; ++j) {
      float key[kEach], value[kEach], dot = 0;
      read_row(key, p.k.at(first + j, head), p.head_dim);
      read_row(value, p.v.at(first + j, head), p.head_dim);
#pragma unroll
      for (int e = 0; e < kEach; ++e) dot = fmaf(query[e], key[e], dot);
#pragma unroll
      for (int step = 16; step > 0; step /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, step);
      const float score = p.alpha * dot;
      const float weight = silu_of(score, 1.0f / (1.0f + expf(-score))).value;
#pragma unroll
      for (int e = 0; e < kEach; ++e) sum[e] = fmaf(weight, value[e], sum[e]);
    }
  };
  visit(0, keys.end0);
  visit(keys.lo1, keys.hi1);
  visit(keys.lo2, keys.hi2);

  const float scale = s.common_scale * (s.scale != nullptr ? s.scale[b] : 1.0f);
  T* const to = p.o.at(row, head);
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int column = static_cast<int>(threadIdx.x) % 32 + 32 * e;
    if (column < p.head_dim) to[column] = static_cast<T>(sum[e] * scale);
  }
}

template <typename T>
void launch_single_rows(const AttentionProblem& p, const AttentionRows& o, cudaStream_t stream) {
  const SingleRows<T> rows{.samples = samples_of(p),
                           .query_offsets = p.offsets_of_queries(),
                           .alpha = static_cast<float>(p.alpha),
                           .head_dim = static_cast<int>(p.head_dim),
                           .q = rows_of<T>(p.q),
                           .k = rows_of<T>(p.k),
                           .v = rows_of<T>(p.v),
                           .o = {static_cast<T*>(o.data), o.row_stride, o.head_stride}};
  const dim3 blocks(static_cast<unsigned>((p.query_rows() + kWarps - 1) / kWarps),
                    static_cast<unsigned>(p.heads));
  auto* const kernel = p.head_dim <= 32    ? single_rows<T, 1>
                       : p.head_dim <= 64  ? single_rows<T, 2>
                       : p.head_dim <= 128 ? single_rows<T, 4>
                                           : single_rows<T, 8>;
  launch("attention by single rows", kernel, blocks, 32 * kWarps, stream, rows);
}

}  // namespace

void single_rows_forward(const AttentionProblem& p, const AttentionRows& o, cudaStream_t stream) {
  if (p.query_rows() == 0) return;
  if (p.type == AttentionType::bf16)
    launch_single_rows<__nv_bfloat16>(p, o, stream);
  else if (p.type == AttentionType::fp16)
    launch_single_rows<__half>(p, o, stream);
  else
    launch_single_rows<float>(p, o, stream);
}

}  // namespace hstu::cuda
