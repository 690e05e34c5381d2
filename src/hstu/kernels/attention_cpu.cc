// The specification: one task per (sample, head), blocks of queries against blocks of keys, each block
// product through BLAS. At most one block of scores a thread is held, and nothing beyond the causal diagonal
// block is computed.
#include <algorithm>
#include <numeric>
#include <vector>

#include "hstu/base/threads.h"
#include "hstu/kernels/attention.h"
#include "hstu/kernels/gemm.h"
#include "hstu/kernels/math.h"

namespace hstu::kernels {
namespace {

constexpr std::int64_t kQueryBlock = 64;
constexpr std::int64_t kKeyBlock = 256;

// Tokens of one sample as this head sees them.
template <typename T>
struct Slice {
  Slice(const AttentionProblem<T>& p, std::int64_t sample, std::int64_t head)
      : tokens(p.offsets[sample + 1] - p.offsets[sample]),
        queries(p.query_offsets[sample + 1] - p.query_offsets[sample]),
        first(tokens - queries),
        q_stride(p.heads * p.head_dim),
        vk_stride(2 * p.heads * p.head_dim),
        q_at(p.query_offsets[sample] * q_stride + head * p.head_dim),
        vk_at(p.offsets[sample] * vk_stride + head * p.head_dim),
        scale(p.scale[sample]) {}
  std::int64_t tokens, queries;
  std::int64_t first;  // the token that query 0 stands for
  std::int64_t q_stride, vk_stride;
  std::int64_t q_at, vk_at;  // where the slice begins in q (and o), and in the [v, k] rows
  T scale;
};

// One block: queries [q0, q0 + rows) against keys [k0, k0 + cols).
struct Block {
  std::int64_t q0, rows, k0, cols;
};

// Calls body(block) over the blocks at or below the diagonal.
template <typename T, typename Body>
void for_each_block(const Slice<T>& s, const Body& body) {
  for (std::int64_t q0 = 0; q0 < s.queries; q0 += kQueryBlock) {
    const std::int64_t rows = std::min(kQueryBlock, s.queries - q0);
    const std::int64_t visible = s.first + q0 + rows;  // keys that the block's last query sees
    for (std::int64_t k0 = 0; k0 < visible; k0 += kKeyBlock) {
      body(Block{q0, rows, k0, std::min(kKeyBlock, visible - k0)});
    }
  }
}

// Number of keys of the block that query `row` of the block sees.
template <typename T>
std::int64_t visible_keys(const Slice<T>& s, const Block& b, std::int64_t row) {
  return std::clamp<std::int64_t>(s.first + b.q0 + row + 1 - b.k0, 0, b.cols);
}

// body(sample, head) in parallel, longest samples first so that threads finish together. A task owns its rows
// of the outputs, so the result does not depend on the number of threads.
template <typename T, typename Body>
void for_each_slice(const AttentionProblem<T>& p, const Body& body) {
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
void scores(const AttentionProblem<T>& p, const Slice<T>& s, const Block& b, T* out) {
  gemm(Gemm<T>{.m = b.rows,
               .n = b.cols,
               .k = p.head_dim,
               .alpha = p.alpha,
               .a = {p.q + s.q_at + b.q0 * s.q_stride, s.q_stride},
               .b = {p.k + s.vk_at + b.k0 * s.vk_stride, s.vk_stride, Op::transpose},
               .c = out,
               .stride_c = b.cols},
       HostStream());
}

}  // namespace

template <typename T>
void attention(const AttentionProblem<T>& p, T* o) {
  for_each_slice(p, [&](std::int64_t sample, std::int64_t head) {
    const Slice<T> s(p, sample, head);
    std::vector<T> a(
        static_cast<std::size_t>(std::min(kQueryBlock, s.queries) * std::min(kKeyBlock, s.tokens)));
    for_each_block(s, [&](const Block& b) {
      scores(p, s, b, a.data());
      for (std::int64_t r = 0; r < b.rows; ++r) {
        T* const row = a.data() + r * b.cols;
        const std::int64_t n = visible_keys(s, b, r);
#pragma omp simd
        for (std::int64_t c = 0; c < n; ++c) row[c] = silu(row[c]) * s.scale;
        std::fill(row + n, row + b.cols, T(0));
      }
      gemm(Gemm<T>{.m = b.rows,
                   .n = p.head_dim,
                   .k = b.cols,
                   .a = {a.data(), b.cols},
                   .b = {p.v + s.vk_at + b.k0 * s.vk_stride, s.vk_stride},
                   .beta = T(b.k0 > 0),
                   .c = o + s.q_at + b.q0 * s.q_stride,
                   .stride_c = s.q_stride},
           HostStream());
    });
  });
}

template <typename T>
void attention_backward(const AttentionProblem<T>& p, const T* d_o, T beta_q, T* dq, T beta_vk, T* dvk) {
  const std::int64_t width = p.heads * p.head_dim;
  if (p.offsets[p.samples] == 0) return;  // no tokens: the pointers may be null
  for_each_slice(p, [&](std::int64_t sample, std::int64_t head) {
    const Slice<T> s(p, sample, head);
    const std::int64_t vk_rows = s.vk_stride;
    T* const dv = dvk + s.vk_at;
    T* const dk = dv + width;
    for (std::int64_t t = 0; t < s.tokens && beta_vk == T(0); ++t) {
      std::fill_n(dv + t * vk_rows, p.head_dim, T(0));
      std::fill_n(dk + t * vk_rows, p.head_dim, T(0));
    }
    const auto block =
        static_cast<std::size_t>(std::min(kQueryBlock, s.queries) * std::min(kKeyBlock, s.tokens));
    std::vector<T> a(block), ds(block);
    for_each_block(s, [&](const Block& b) {
      const T* const d_o_rows = d_o + s.q_at + b.q0 * s.q_stride;
      const std::int64_t keys = s.vk_at + b.k0 * s.vk_stride;
      scores(p, s, b, a.data());
      gemm(Gemm<T>{.m = b.rows,
                   .n = b.cols,
                   .k = p.head_dim,
                   .a = {d_o_rows, s.q_stride},
                   .b = {p.v + keys, s.vk_stride, Op::transpose},
                   .c = ds.data(),
                   .stride_c = b.cols},
           HostStream());
      for (std::int64_t r = 0; r < b.rows; ++r) {
        T* const a_row = a.data() + r * b.cols;
        T* const ds_row = ds.data() + r * b.cols;
        const std::int64_t n = visible_keys(s, b, r);
#pragma omp simd
        for (std::int64_t c = 0; c < n; ++c) {
          const T x = a_row[c];
          const T sigma = sigmoid(x);
          a_row[c] = x * sigma * s.scale;
          ds_row[c] *= sigma * (T(1) + x * (T(1) - sigma)) * s.scale;
        }
        std::fill(a_row + n, a_row + b.cols, T(0));
        std::fill(ds_row + n, ds_row + b.cols, T(0));
      }
      gemm(Gemm<T>{.m = b.cols,
                   .n = p.head_dim,
                   .k = b.rows,
                   .a = {a.data(), b.cols, Op::transpose},
                   .b = {d_o_rows, s.q_stride},
                   .beta = 1,
                   .c = dv + b.k0 * vk_rows,
                   .stride_c = vk_rows},
           HostStream());
      gemm(Gemm<T>{.m = b.cols,
                   .n = p.head_dim,
                   .k = b.rows,
                   .alpha = p.alpha,
                   .a = {ds.data(), b.cols, Op::transpose},
                   .b = {p.q + s.q_at + b.q0 * s.q_stride, s.q_stride},
                   .beta = 1,
                   .c = dk + b.k0 * vk_rows,
                   .stride_c = vk_rows},
           HostStream());
      gemm(Gemm<T>{.m = b.rows,
                   .n = p.head_dim,
                   .k = b.cols,
                   .alpha = p.alpha,
                   .a = {ds.data(), b.cols},
                   .b = {p.k + keys, s.vk_stride},
                   .beta = b.k0 > 0 ? T(1) : beta_q,
                   .c = dq + s.q_at + b.q0 * s.q_stride,
                   .stride_c = s.q_stride},
           HostStream());
    });
  });
}

template void attention(const AttentionProblem<float>&, float*);
template void attention(const AttentionProblem<double>&, double*);
template void attention_backward(const AttentionProblem<float>&, const float*, float, float*, float, float*);
template void attention_backward(const AttentionProblem<double>&, const double*, double, double*, double,
                                 double*);

}  // namespace hstu::kernels
