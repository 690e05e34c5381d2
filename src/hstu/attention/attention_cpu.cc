// One task per (sample, head): blocks of queries against blocks of keys, each block product through BLAS. A
// thread keeps one or two blocks of scores. Blocks that no query sees are not computed.
#include "hstu/attention/attention_cpu.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "hstu/attention/checks.h"
#include "hstu/attention/mask.h"
#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/kernels/gemm.h"
#include "hstu/kernels/math.h"

namespace hstu::cpu {
namespace {

using kernels::Op;

constexpr std::int64_t kQueryBlock = 64;
constexpr std::int64_t kKeyBlock = 256;

// A matrix whose rows are `stride` elements apart.
template <typename T>
struct Matrix {
  T* data;
  std::int64_t stride;
  Matrix from(std::int64_t row) const { return {data + row * stride, stride}; }
  operator Matrix<const T>() const { return {data, stride}; }
};

// C (m, n) = alpha * op(A) (m, k) * op(B) (k, n) + beta * C.
template <typename T>
void multiply(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
              const std::type_identity_t<Matrix<const T>>& a, const std::type_identity_t<Matrix<const T>>& b,
              T beta, const Matrix<T>& c) {
  kernels::gemm(kernels::Gemm<T>{.m = m,
                                 .n = n,
                                 .k = k,
                                 .alpha = alpha,
                                 .a = {a.data, a.stride, op_a},
                                 .b = {b.data, b.stride, op_b},
                                 .beta = beta,
                                 .c = c.data,
                                 .stride_c = c.stride},
                HostStream());
}

// One head of one sample.
template <typename T>
struct Slice {
  Slice(const AttentionProblem& p, std::int64_t sample, std::int64_t head_)
      : head(head_),
        first_token(p.offsets[sample]),
        first_query(p.offsets_of_queries()[sample]),
        tokens(p.offsets[sample + 1] - first_token),
        queries(p.offsets_of_queries()[sample + 1] - first_query),
        mask(sample_mask(static_cast<std::int32_t>(tokens), p.contexts == nullptr ? 0 : p.contexts[sample],
                         p.targets == nullptr ? 0 : p.targets[sample], p.mask.target_group, p.mask.left,
                         p.mask.right)),
        scale(static_cast<T>(p.scale)) {
    if (p.sample_scale != nullptr) scale *= static_cast<const T*>(p.sample_scale)[sample];
  }
  template <typename Rows>
  auto of_tokens(const Rows& rows) const {
    return at(rows, first_token);
  }
  template <typename Rows>
  auto of_queries(const Rows& rows) const {
    return at(rows, first_query);
  }
  // The token that query i is.
  std::int32_t token_of(std::int64_t query) const {
    return static_cast<std::int32_t>(tokens - queries + query);
  }

  std::int64_t head, first_token, first_query, tokens, queries;
  SampleMask mask;
  T scale;

 private:
  Matrix<const T> at(const AttentionInput& rows, std::int64_t row) const {
    return {static_cast<const T*>(rows.data) + row * rows.row_stride + head * rows.head_stride,
            rows.row_stride};
  }
  Matrix<T> at(const AttentionRows& rows, std::int64_t row) const {
    return {static_cast<T*>(rows.data) + row * rows.row_stride + head * rows.head_stride, rows.row_stride};
  }
};

std::array<std::pair<std::int32_t, std::int32_t>, 3> intervals_of(const Intervals& x) {
  return {{{0, x.end0}, {x.lo1, x.hi1}, {x.lo2, x.hi2}}};
}

// Queries [q0, q0 + rows) of the slice against keys [k0, k0 + cols).
struct Block {
  std::int64_t q0, rows, k0, cols;
  bool is_first;  // of its queries
  bool is_full;   // every query sees every key
};

// Calls body(block) for the blocks that hold a pair of which the query sees the key: the part of a block of
// kKeyBlock keys from the first to the last key that any of the queries sees.
template <typename T, typename Body>
void for_each_block(const Slice<T>& s, const Body& body) {
  for (std::int64_t q0 = 0; q0 < s.queries; q0 += kQueryBlock) {
    const std::int64_t rows = std::min(kQueryBlock, s.queries - q0);
    const Coverage keys = keys_of_queries(s.mask, s.token_of(q0), s.token_of(q0 + rows));
    const BlockWalk walk(keys.any, kKeyBlock);
    for (std::int32_t step = 0; step < walk.count(); ++step) {
      const std::int64_t begin = walk[step] * kKeyBlock, end = begin + kKeyBlock;
      std::int64_t lo = end, hi = begin;
      for (const auto& [from, to] : intervals_of(keys.any)) {
        if (from >= to || to <= begin || from >= end) continue;
        lo = std::min(lo, std::max<std::int64_t>(begin, from));
        hi = std::max(hi, std::min<std::int64_t>(end, to));
      }
      body(Block{q0, rows, lo, hi - lo, step == 0, keys.full_lo <= lo && hi <= keys.full_hi});
    }
  }
}

// Divides the columns of a block, as query `row` of it sees them: seen(begin, end) and unseen(begin, end).
template <typename T, typename Seen, typename Unseen>
void for_each_run(const Slice<T>& s, const Block& b, std::int64_t row, const Seen& seen,
                  const Unseen& unseen) {
  std::int64_t done = 0;
  for (const auto& [from, to] : intervals_of(keys_of_query(s.mask, s.token_of(b.q0 + row)))) {
    if (from >= to) continue;
    const std::int64_t begin = std::max(from - b.k0, done), end = std::min(to - b.k0, b.cols);
    if (begin >= end) continue;
    if (done < begin) unseen(done, begin);
    seen(begin, end);
    done = end;
  }
  if (done < b.cols) unseen(done, b.cols);
}

// The two loops over scores are functions of their own: inlined into the loops over blocks they lack vector
// registers and are 12 % slower.
//
// scores x become scale * silu(x).
template <typename T>
[[gnu::noinline]] void activate(T* scores, std::int64_t count, T scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) scores[i] = kernels::silu(scores[i]) * scale;
}

// The same, and gradients of the activations become gradients of the scores.
template <typename T>
[[gnu::noinline]] void activate_and_slope(T* scores, T* gradients, std::int64_t count, T scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const T x = scores[i];
    const T sigma = kernels::sigmoid(x);
    scores[i] = x * sigma * scale;
    gradients[i] *= sigma * (T(1) + x * (T(1) - sigma)) * scale;
  }
}

// body(sample, head) in parallel, longest samples first so that threads finish together. A task owns its rows
// of the outputs, so the result does not depend on the number of threads.
template <typename Body>
void for_each_slice(const AttentionProblem& p, const Body& body) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(p.samples));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return p.offsets[a + 1] - p.offsets[a] > p.offsets[b + 1] - p.offsets[b];
  });
  parallel_blocks(p.samples * p.heads, 1, [&](std::int64_t task, std::int64_t) {
    body(order[static_cast<std::size_t>(task / p.heads)], task % p.heads);
  });
}

template <typename T>
std::vector<T> block_of(const Slice<T>& s) {
  return std::vector<T>(
      static_cast<std::size_t>(std::min(kQueryBlock, s.queries) * std::min(kKeyBlock, s.tokens)));
}

template <typename T>
void forward(const AttentionProblem& p, const AttentionRows& output) {
  const T alpha = static_cast<T>(p.alpha);
  for_each_slice(p, [&](std::int64_t sample, std::int64_t head) {
    const Slice<T> s(p, sample, head);
    if (s.queries == 0) return;
    const Matrix<const T> q = s.of_queries(p.q), k = s.of_tokens(p.k), v = s.of_tokens(p.v);
    const Matrix<T> o = s.of_queries(output);
    std::vector<T> scores = block_of(s);
    for_each_block(s, [&](const Block& b) {
      const Matrix<T> a{scores.data(), b.cols};
      multiply(Op::none, Op::transpose, b.rows, b.cols, p.head_dim, alpha, q.from(b.q0), k.from(b.k0), T(0),
               a);
      if (b.is_full) activate(a.data, b.rows * b.cols, s.scale);
      for (std::int64_t r = 0; r < b.rows && !b.is_full; ++r) {
        T* const row = a.from(r).data;
        for_each_run(
            s, b, r,
            [&](std::int64_t begin, std::int64_t end) { activate(row + begin, end - begin, s.scale); },
            [&](std::int64_t begin, std::int64_t end) { std::fill(row + begin, row + end, T(0)); });
      }
      multiply(Op::none, Op::none, b.rows, p.head_dim, b.cols, T(1), a, v.from(b.k0), T(!b.is_first),
               o.from(b.q0));
    });
  });
}

template <typename T>
void backward(const AttentionProblem& p, const AttentionGradients& g) {
  const T alpha = static_cast<T>(p.alpha);
  for_each_slice(p, [&](std::int64_t sample, std::int64_t head) {
    const Slice<T> s(p, sample, head);
    if (s.tokens == 0) return;
    const Matrix<const T> k = s.of_tokens(p.k), v = s.of_tokens(p.v);
    const Matrix<T> dk = s.of_tokens(g.dk), dv = s.of_tokens(g.dv);
    for (std::int64_t t = 0; t < s.tokens && !g.accumulate_dkv; ++t) {
      std::fill_n(dv.from(t).data, p.head_dim, T(0));
      std::fill_n(dk.from(t).data, p.head_dim, T(0));
    }
    if (s.queries == 0) return;
    const Matrix<const T> q = s.of_queries(p.q), d_o = s.of_queries(g.d_o);
    const Matrix<T> dq = s.of_queries(g.dq);
    std::vector<T> scores = block_of(s), slopes = block_of(s);
    for_each_block(s, [&](const Block& b) {
      const Matrix<T> a{scores.data(), b.cols}, ds{slopes.data(), b.cols};
      multiply(Op::none, Op::transpose, b.rows, b.cols, p.head_dim, alpha, q.from(b.q0), k.from(b.k0), T(0),
               a);
      multiply(Op::none, Op::transpose, b.rows, b.cols, p.head_dim, T(1), d_o.from(b.q0), v.from(b.k0), T(0),
               ds);
      if (b.is_full) activate_and_slope(a.data, ds.data, b.rows * b.cols, s.scale);
      for (std::int64_t r = 0; r < b.rows && !b.is_full; ++r) {
        T* const a_row = a.from(r).data;
        T* const ds_row = ds.from(r).data;
        for_each_run(
            s, b, r,
            [&](std::int64_t begin, std::int64_t end) {
              activate_and_slope(a_row + begin, ds_row + begin, end - begin, s.scale);
            },
            [&](std::int64_t begin, std::int64_t end) {
              std::fill(a_row + begin, a_row + end, T(0));
              std::fill(ds_row + begin, ds_row + end, T(0));
            });
      }
      multiply(Op::transpose, Op::none, b.cols, p.head_dim, b.rows, T(1), a, d_o.from(b.q0), T(1),
               dv.from(b.k0));
      multiply(Op::transpose, Op::none, b.cols, p.head_dim, b.rows, alpha, ds, q.from(b.q0), T(1),
               dk.from(b.k0));
      multiply(Op::none, Op::none, b.rows, p.head_dim, b.cols, alpha, ds, k.from(b.k0),
               T(!b.is_first || g.accumulate_dq), dq.from(b.q0));
    });
  });
}

// BLAS takes no rows that overlap.
void check_blas(const AttentionProblem& p, const char* name, const AttentionInput& rows, std::int64_t count) {
  check(count <= 1 || rows.row_stride >= p.head_dim,
        "attention: {}: the CPU needs a row stride of at least the head size {}, found {}", name, p.head_dim,
        rows.row_stride);
}

// True if there is anything to compute.
bool check_inputs(const AttentionProblem& p) {
  check_attention(p);
  check_offsets(p);
  check_blas(p, "q", p.q, p.query_rows());
  check_blas(p, "k", p.k, p.tokens);
  check_blas(p, "v", p.v, p.tokens);
  return p.samples > 0 && p.tokens > 0;
}

void check_output_rows(const AttentionProblem& p, const char* name, const AttentionRows& rows,
                       std::int64_t count) {
  check_output(p, name, rows, count);
  check_blas(p, name, rows, count);
}

}  // namespace

void attention_forward(const AttentionProblem& p, const AttentionRows& o) {
  if (!check_inputs(p)) return;
  check_output_rows(p, "o", o, p.query_rows());
  p.type == AttentionType::fp32 ? forward<float>(p, o) : forward<double>(p, o);
}

void attention_backward(const AttentionProblem& p, const AttentionGradients& g) {
  if (!check_inputs(p)) return;
  check_blas(p, "d_o", g.d_o, p.query_rows());
  check_output_rows(p, "dq", g.dq, p.query_rows());
  check_output_rows(p, "dk", g.dk, p.tokens);
  check_output_rows(p, "dv", g.dv, p.tokens);
  p.type == AttentionType::fp32 ? backward<float>(p, g) : backward<double>(p, g);
}

}  // namespace hstu::cpu
