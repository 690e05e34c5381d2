#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hstu/attention/cuda/plain.h"
#include "hstu/attention/cuda/samples.h"
#include "hstu/device/cuda/check.h"

namespace hstu::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kPerLane = kPlainHeadDim / 32;

template <typename T>
struct Rows {
  T* data;
  std::int64_t row_stride, head_stride;
};
template <typename T>
Rows<T> rows_of(const AttentionRows& r) {
  return {static_cast<T*>(r.data), r.row_stride, r.head_stride};
}

struct Shape {
  Samples samples;
  int sample_count, heads, head_dim;
  std::int64_t tokens;
  float alpha;
};
Shape shape_of(const AttentionProblem& p) {
  return {samples_of(p),
          static_cast<int>(p.samples),
          static_cast<int>(p.heads),
          static_cast<int>(p.head_dim),
          p.tokens,
          p.alpha};
}

// A lane's elements lane, lane + 32, ... of one row; zero beyond the head's size.
struct Fragment {
  float x[kPerLane] = {};
};
template <typename T>
__device__ Fragment load(const Rows<T>& rows, std::int64_t row, int head, int head_dim) {
  Fragment f;
  const T* const at = rows.data + row * rows.row_stride + head * rows.head_stride;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int d = static_cast<int>(threadIdx.x % 32) + 32 * i;
    if (d < head_dim) f.x[i] = static_cast<float>(at[d]);
  }
  return f;
}
template <typename T>
__device__ void store(const Rows<T>& rows, std::int64_t row, int head, int head_dim, const Fragment& f,
                      float scale) {
  T* const at = rows.data + row * rows.row_stride + head * rows.head_stride;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int d = static_cast<int>(threadIdx.x % 32) + 32 * i;
    if (d < head_dim) at[d] = static_cast<T>(f.x[i] * scale);
  }
}
__device__ float dot(const Fragment& a, const Fragment& b) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) sum = fmaf(a.x[i], b.x[i], sum);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  return sum;
}
__device__ void add(Fragment& to, float factor, const Fragment& f) {
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) to.x[i] = fmaf(factor, f.x[i], to.x[i]);
}

// silu(x) and its derivative.
struct Silu {
  float value, slope;
};
__device__ Silu silu(float x) {
  const float sigma = 1.0f / (1.0f + expf(-x));
  return {x * sigma, sigma * (1.0f + x * (1.0f - sigma))};
}

// The row this warp works on, and its sample.
struct Place {
  bool found = false;
  int head = 0, row = 0;
  std::int64_t begin = 0;
  SampleMask mask{};
  float scale = 0;
};
__device__ Place place_of(const Shape& s) {
  Place at;
  const std::int64_t warp = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const std::int64_t token = warp / s.heads;
  if (token < s.samples.offsets[0] || token >= s.samples.offsets[s.sample_count]) return at;
  int low = 0, high = s.sample_count;  // offsets[low] <= token < offsets[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (s.samples.offsets[middle] <= token ? low : high) = middle;
  }
  at.found = true;
  at.head = static_cast<int>(warp % s.heads);
  at.begin = s.samples.offsets[low];
  at.row = static_cast<int>(token - at.begin);
  const int n = static_cast<int>(s.samples.offsets[low + 1] - at.begin);
  const int h = n - (s.samples.targets != nullptr ? larger(0, smaller(n, s.samples.targets[low])) : 0);
  const int c = s.samples.contexts != nullptr ? larger(0, smaller(h, s.samples.contexts[low])) : 0;
  at.mask = {n, c, h, s.samples.group, s.samples.left, s.samples.right};
  at.scale = s.samples.common_scale * (s.samples.scale != nullptr ? s.samples.scale[low] : 1.0f);
  return at;
}

template <typename Body>
__device__ void for_each(const Intervals& x, const Body& body) {
  for (int i = 0; i < x.end0; ++i) body(i);
  for (int i = x.lo1 > 0 ? x.lo1 : 0; i < x.hi1; ++i) body(i);
  for (int i = x.lo2; i < x.hi2; ++i) body(i);
}

template <typename T>
__global__ void forward_kernel(Shape s, Rows<const T> q, Rows<const T> k, Rows<const T> v, Rows<T> o) {
  const Place at = place_of(s);
  if (!at.found) return;
  const Fragment query = load(q, at.begin + at.row, at.head, s.head_dim);
  Fragment sum;
  for_each(keys_of_query(at.mask, at.row), [&](int j) {
    const float x = s.alpha * dot(query, load(k, at.begin + j, at.head, s.head_dim));
    add(sum, silu(x).value, load(v, at.begin + j, at.head, s.head_dim));
  });
  store(o, at.begin + at.row, at.head, s.head_dim, sum, at.scale);
}

template <typename T>
__global__ void query_gradient_kernel(Shape s, Rows<const T> q, Rows<const T> k, Rows<const T> v,
                                      Rows<const T> d_o, Rows<T> dq) {
  const Place at = place_of(s);
  if (!at.found) return;
  const Fragment query = load(q, at.begin + at.row, at.head, s.head_dim);
  const Fragment gradient = load(d_o, at.begin + at.row, at.head, s.head_dim);
  Fragment sum;
  for_each(keys_of_query(at.mask, at.row), [&](int j) {
    const Fragment key = load(k, at.begin + j, at.head, s.head_dim);
    const float slope = silu(s.alpha * dot(query, key)).slope;
    add(sum, slope * dot(gradient, load(v, at.begin + j, at.head, s.head_dim)), key);
  });
  store(dq, at.begin + at.row, at.head, s.head_dim, sum, at.scale * s.alpha);
}

template <typename T>
__global__ void key_gradient_kernel(Shape s, Rows<const T> q, Rows<const T> k, Rows<const T> v,
                                    Rows<const T> d_o, Rows<T> dk, Rows<T> dv) {
  const Place at = place_of(s);
  if (!at.found) return;
  const Fragment key = load(k, at.begin + at.row, at.head, s.head_dim);
  const Fragment value = load(v, at.begin + at.row, at.head, s.head_dim);
  Fragment key_sum, value_sum;
  for_each(queries_of_key(at.mask, at.row), [&](int i) {
    const Fragment query = load(q, at.begin + i, at.head, s.head_dim);
    const Fragment gradient = load(d_o, at.begin + i, at.head, s.head_dim);
    const Silu p = silu(s.alpha * dot(query, key));
    add(value_sum, p.value, gradient);
    add(key_sum, p.slope * dot(gradient, value), query);
  });
  store(dk, at.begin + at.row, at.head, s.head_dim, key_sum, at.scale * s.alpha);
  store(dv, at.begin + at.row, at.head, s.head_dim, value_sum, at.scale);
}

unsigned blocks_of(const AttentionProblem& p) {
  return static_cast<unsigned>((p.tokens * p.heads + kWarps - 1) / kWarps);
}

template <typename Body>
void with_type(AttentionType type, const Body& body) {
  if (type == AttentionType::bf16)
    body(__nv_bfloat16{});
  else if (type == AttentionType::fp16)
    body(__half{});
  else
    body(0.0f);
}

}  // namespace

void plain_forward(const AttentionProblem& p, const AttentionRows& o, cudaStream_t stream) {
  with_type(p.type, [&](auto zero) {
    using T = decltype(zero);
    forward_kernel<T><<<blocks_of(p), 32 * kWarps, 0, stream>>>(
        shape_of(p), rows_of<const T>(p.q), rows_of<const T>(p.k), rows_of<const T>(p.v), rows_of<T>(o));
  });
  check_cuda(cudaGetLastError(), "plain attention forward");
}

void plain_backward(const AttentionProblem& p, const AttentionRows& d_o, const AttentionRows& dq,
                    const AttentionRows& dk, const AttentionRows& dv, cudaStream_t stream) {
  with_type(p.type, [&](auto zero) {
    using T = decltype(zero);
    const Rows<const T> q = rows_of<const T>(p.q), k = rows_of<const T>(p.k), v = rows_of<const T>(p.v);
    query_gradient_kernel<T><<<blocks_of(p), 32 * kWarps, 0, stream>>>(shape_of(p), q, k, v,
                                                                       rows_of<const T>(d_o), rows_of<T>(dq));
    key_gradient_kernel<T><<<blocks_of(p), 32 * kWarps, 0, stream>>>(
        shape_of(p), q, k, v, rows_of<const T>(d_o), rows_of<T>(dk), rows_of<T>(dv));
  });
  check_cuda(cudaGetLastError(), "plain attention backward");
}

}  // namespace hstu::cuda
