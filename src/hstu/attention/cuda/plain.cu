#include <type_traits>

#include "hstu/attention/cuda/jagged_rows.cuh"
#include "hstu/attention/cuda/plain.h"
#include "hstu/attention/cuda/samples.h"
#include "hstu/device/cuda/launch.cuh"

namespace hstu::cuda {
namespace {

constexpr int kWarps = 8;
// Rows that a warp reads before it uses the first: few enough for its registers.
template <int kPerLane>
inline constexpr int kAtOnce = kPerLane == 1   ? 16
                               : kPerLane == 2 ? 8
                                               : 4;

struct Shape {
  Samples samples;
  const std::int64_t* query_offsets;
  int head_dim;
  float alpha;
};
Shape shape_of(const AttentionProblem& p) {
  return {samples_of(p), p.offsets_of_queries(), static_cast<int>(p.head_dim), static_cast<float>(p.alpha)};
}

// A lane's elements lane, lane + 32, ... of one row; zero beyond the head's size.
template <int kPerLane>
struct Fragment {
  float x[kPerLane] = {};
};
template <int kPerLane, typename T>
__device__ Fragment<kPerLane> load(const Rows<T>& rows, std::int64_t row, int head, int head_dim) {
  Fragment<kPerLane> f;
  const T* const at = rows.at(row, head);
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int d = static_cast<int>(threadIdx.x % 32) + 32 * i;
    if (d < head_dim) f.x[i] = static_cast<float>(at[d]);
  }
  return f;
}
// Of kAtOnce rows from `first` on, of which there are `n`; the last one takes the place of those beyond.
template <int kPerLane>
struct Fragments {
  static constexpr int kRows = kAtOnce<kPerLane>;
  Fragment<kPerLane> row[kRows];

  template <typename T>
  __device__ Fragments(const Rows<T>& rows, std::int64_t first, int n, int head, int head_dim) {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      row[i] = load<kPerLane>(rows, first + (i < n ? i : n - 1), head, head_dim);
  }
};
template <int kPerLane, typename T>
__device__ void store(const Output<T>& to, std::int64_t row, int head, int head_dim,
                      const Fragment<kPerLane>& f, float scale) {
  T* const at = to.rows.at(row, head);
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int d = static_cast<int>(threadIdx.x % 32) + 32 * i;
    if (d < head_dim)
      at[d] = static_cast<T>(f.x[i] * scale + (to.accumulate ? static_cast<float>(at[d]) : 0));
  }
}
// The products of a row with kRows others: a lane gets that of row lane * kRows / 32. Lanes exchange half of
// the sums that they still have, until each has one.
template <int kPerLane>
__device__ float dots(const Fragment<kPerLane>& a, const Fragments<kPerLane>& b) {
  constexpr int kRows = Fragments<kPerLane>::kRows;
  float sums[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    sums[r] = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) sums[r] = fmaf(a.x[i], b.row[r].x[i], sums[r]);
  }
  int step = 16;
#pragma unroll
  for (int left = kRows; left > 1; left /= 2, step /= 2) {
    const bool upper = (threadIdx.x & step) != 0;
#pragma unroll
    for (int r = 0; r < left / 2; ++r) {
      const float mine = upper ? sums[r + left / 2] : sums[r], other = upper ? sums[r] : sums[r + left / 2];
      sums[r] = mine + __shfl_xor_sync(0xffffffffu, other, step);
    }
  }
#pragma unroll
  for (; step > 0; step /= 2) sums[0] += __shfl_xor_sync(0xffffffffu, sums[0], step);
  return sums[0];
}
// What the lanes of row `row` have.
template <int kRows>
__device__ float of_row(float x, int row) {
  return __shfl_sync(0xffffffffu, x, row * (32 / kRows));
}
template <int kPerLane>
__device__ void add(Fragment<kPerLane>& to, float factor, const Fragment<kPerLane>& f) {
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) to.x[i] = fmaf(factor, f.x[i], to.x[i]);
}

__device__ Silu silu(float x) {
  return silu_of(x, expf(-x));
}

// The row that this warp computes, and its sample. The sample's token i is row first_token + i of k and v,
// and row first_query + i of q and o from token `queries_from` on.
struct Place {
  bool found = false;
  int head = 0, token = 0, queries_from = 0;
  std::int64_t first_token = 0, first_query = 0;
  SampleMask mask{};
  float scale = 0;
};

// `offsets` divide the rows that the warps share out: those of the tokens, or those of the queries.
__device__ Place place_of(const Shape& s, const std::int64_t* offsets) {
  Place at;
  const std::int64_t warp = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const std::int64_t row = warp / s.samples.heads;
  if (row < offsets[0] || row >= offsets[s.samples.count]) return at;
  int low = 0, high = s.samples.count;  // offsets[low] <= row < offsets[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (offsets[middle] <= row ? low : high) = middle;
  }
  const int n = static_cast<int>(s.samples.offsets[low + 1] - s.samples.offsets[low]);
  at.queries_from = n - static_cast<int>(s.query_offsets[low + 1] - s.query_offsets[low]);
  at.first_token = s.samples.offsets[low];
  at.first_query = s.query_offsets[low] - at.queries_from;
  at.head = static_cast<int>(warp % s.samples.heads);
  at.token = static_cast<int>(row - (offsets == s.query_offsets ? at.first_query : at.first_token));
  at.found = at.token >= 0;  // false: more queries than tokens, which is not valid
  at.mask = sample_mask(n, s.samples.contexts != nullptr ? s.samples.contexts[low] : 0,
                        s.samples.targets != nullptr ? s.samples.targets[low] : 0, s.samples.group,
                        s.samples.left, s.samples.right);
  at.scale = s.samples.common_scale * (s.samples.scale != nullptr ? s.samples.scale[low] : 1.0f);
  return at;
}

// body(first, n) for all i of the intervals that are at least `from`, in ascending order, up to kRows of them
// at a time.
template <int kRows, typename Body>
__device__ void for_each(const Intervals& x, int from, const Body& body) {
  const auto interval = [&](int begin, int end) {
    for (int i = begin; i < end; i += kRows) body(i, end - i < kRows ? end - i : kRows);
  };
  interval(larger(0, from), x.end0);
  interval(larger(x.lo1, larger(0, from)), x.hi1);
  interval(larger(x.lo2, from), x.hi2);
}

template <int kPerLane, typename T>
__global__ void forward_kernel(Shape s, Rows<const T> q, Rows<const T> k, Rows<const T> v, Output<T> o) {
  wait_for_previous_launch();
  const Place at = place_of(s, s.query_offsets);
  if (!at.found) return;
  const auto query = load<kPerLane>(q, at.first_query + at.token, at.head, s.head_dim);
  Fragment<kPerLane> sum;
  constexpr int kRows = kAtOnce<kPerLane>;
  for_each<kRows>(keys_of_query(at.mask, at.token), 0, [&](int first, int n) {
    const Fragments<kPerLane> keys(k, at.first_token + first, n, at.head, s.head_dim),
        values(v, at.first_token + first, n, at.head, s.head_dim);
    const float weight = silu(s.alpha * dots(query, keys)).value;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float of_key = of_row<kRows>(weight, i);
      if (i < n) add(sum, of_key, values.row[i]);
    }
  });
  store(o, at.first_query + at.token, at.head, s.head_dim, sum, at.scale);
}

template <int kPerLane, typename T>
__global__ void query_gradient_kernel(Shape s, Rows<const T> q, Rows<const T> k, Rows<const T> v,
                                      Rows<const T> d_o, Output<T> dq) {
  wait_for_previous_launch();
  const Place at = place_of(s, s.query_offsets);
  if (!at.found) return;
  const auto query = load<kPerLane>(q, at.first_query + at.token, at.head, s.head_dim);
  const auto gradient = load<kPerLane>(d_o, at.first_query + at.token, at.head, s.head_dim);
  Fragment<kPerLane> sum;
  constexpr int kRows = kAtOnce<kPerLane>;
  for_each<kRows>(keys_of_query(at.mask, at.token), 0, [&](int first, int n) {
    const Fragments<kPerLane> keys(k, at.first_token + first, n, at.head, s.head_dim),
        values(v, at.first_token + first, n, at.head, s.head_dim);
    const float factor = silu(s.alpha * dots(query, keys)).slope * dots(gradient, values);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float of_key = of_row<kRows>(factor, i);
      if (i < n) add(sum, of_key, keys.row[i]);
    }
  });
  store(dq, at.first_query + at.token, at.head, s.head_dim, sum, at.scale * s.alpha);
}

template <int kPerLane, typename T>
__global__ void key_gradient_kernel(Shape s, Rows<const T> q, Rows<const T> k, Rows<const T> v,
                                    Rows<const T> d_o, Output<T> dk, Output<T> dv) {
  wait_for_previous_launch();
  const Place at = place_of(s, s.samples.offsets);
  if (!at.found) return;
  const auto key = load<kPerLane>(k, at.first_token + at.token, at.head, s.head_dim);
  const auto value = load<kPerLane>(v, at.first_token + at.token, at.head, s.head_dim);
  Fragment<kPerLane> key_sum, value_sum;
  constexpr int kRows = kAtOnce<kPerLane>;
  for_each<kRows>(queries_of_key(at.mask, at.token), at.queries_from, [&](int first, int n) {
    const Fragments<kPerLane> queries(q, at.first_query + first, n, at.head, s.head_dim),
        gradients(d_o, at.first_query + first, n, at.head, s.head_dim);
    const Silu p = silu(s.alpha * dots(key, queries));
    const float through_value = p.slope * dots(value, gradients);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float weight = of_row<kRows>(p.value, i), factor = of_row<kRows>(through_value, i);
      if (i >= n) break;
      add(value_sum, weight, gradients.row[i]);
      add(key_sum, factor, queries.row[i]);
    }
  });
  store(dk, at.first_token + at.token, at.head, s.head_dim, key_sum, at.scale * s.alpha);
  store(dv, at.first_token + at.token, at.head, s.head_dim, value_sum, at.scale);
}

unsigned blocks_of(const AttentionProblem& p, std::int64_t rows) {
  return static_cast<unsigned>((rows * p.heads + kWarps - 1) / kWarps);
}

// body(T(), std::integral_constant<int, elements of a lane>()).
template <typename Body>
void with_form(const AttentionProblem& p, const Body& body) {
  const auto with_width = [&](auto zero) {
    if (p.head_dim <= 32)
      body(zero, std::integral_constant<int, 1>());
    else if (p.head_dim <= 64)
      body(zero, std::integral_constant<int, 2>());
    else
      body(zero, std::integral_constant<int, kPlainHeadDim / 32>());
  };
  if (p.type == AttentionType::bf16)
    with_width(__nv_bfloat16{});
  else if (p.type == AttentionType::fp16)
    with_width(__half{});
  else
    with_width(0.0f);
}

}  // namespace

void plain_forward(const AttentionProblem& p, const AttentionRows& o, cudaStream_t stream) {
  const unsigned blocks = blocks_of(p, p.query_rows());
  if (blocks == 0) return;
  with_form(p, [&](auto zero, auto per_lane) {
    using T = decltype(zero);
    launch("plain attention forward", forward_kernel<per_lane(), T>, blocks, 32 * kWarps, stream, shape_of(p),
           rows_of<T>(p.q), rows_of<T>(p.k), rows_of<T>(p.v), output_of<T>(o, false));
  });
}

void plain_backward(const AttentionProblem& p, const AttentionGradients& g, cudaStream_t stream) {
  constexpr const char* kWhat = "plain attention backward";
  const unsigned query_blocks = blocks_of(p, p.query_rows());
  with_form(p, [&](auto zero, auto per_lane) {
    using T = decltype(zero);
    const Rows<const T> q = rows_of<T>(p.q), k = rows_of<T>(p.k), v = rows_of<T>(p.v),
                        d_o = rows_of<T>(g.d_o);
    launch(kWhat, key_gradient_kernel<per_lane(), T>, blocks_of(p, p.tokens), 32 * kWarps, stream,
           shape_of(p), q, k, v, d_o, output_of<T>(g.dk, g.accumulate_dkv),
           output_of<T>(g.dv, g.accumulate_dkv));
    if (query_blocks > 0) {
      launch_beside(kWhat, query_gradient_kernel<per_lane(), T>, query_blocks, 32 * kWarps, stream,
                    shape_of(p), q, k, v, d_o, output_of<T>(g.dq, g.accumulate_dq));
    }
  });
}

}  // namespace hstu::cuda
