// One task per (sample, head): its keys and values are packed once for the products, then blocks of queries
// meet blocks of keys. A thread keeps one or two blocks of scores. Blocks that no query sees are not
// computed.
#include "hstu/attention/attention_cpu.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "hstu/attention/attention_matrices.h"
#include "hstu/attention/attention_pairs.h"
#include "hstu/attention/checks.h"
#include "hstu/attention/head_slice.h"
#include "hstu/attention/mask.h"
#include "hstu/base/error.h"
#include "hstu/kernels/loops.h"
#include "hstu/kernels/scratch.h"

namespace hstu::cpu {
namespace {

using kernels::Scratch;

constexpr std::int64_t kKeyBlock = 256;
static_assert(kKeyBlock % kernels::kPackedColumns == 0);

template <typename T>
struct Slice : HeadSlice<T> {
  Slice(const AttentionProblem& p, std::int64_t sample, std::int64_t number)
      : HeadSlice<T>(p, sample, number), mask(mask_of_sample(p, sample, this->tokens)) {}
  // The token that query i is.
  std::int32_t token_of(std::int64_t query) const {
    return static_cast<std::int32_t>(this->queries_from + query);
  }

  SampleMask mask;
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
// kKeyBlock keys from about the first to the last key that any of the queries sees.
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
      lo = lo / kernels::kPackedColumns * kernels::kPackedColumns;
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

// The elements of a block of scores.
template <typename T>
std::int64_t block_size(const Slice<T>& s) {
  return std::min(kQueryBlock, s.queries) * std::min(kKeyBlock, s.tokens);
}

// Calls seen(at, count) for the runs of scores of a block that are wanted, and unseen(at, count) for the
// others.
template <typename T, typename Seen, typename Unseen>
void for_each_score(const Slice<T>& s, const Block& b, const Seen& seen, const Unseen& unseen) {
  if (b.is_full) return seen(0, b.rows * b.cols);
  for (std::int64_t r = 0; r < b.rows; ++r) {
    const std::int64_t row = r * b.cols;
    for_each_run(
        s, b, r, [&](std::int64_t begin, std::int64_t end) { seen(row + begin, end - begin); },
        [&](std::int64_t begin, std::int64_t end) { unseen(row + begin, end - begin); });
  }
}

template <typename T>
void forward(const AttentionProblem& p, const AttentionRows& output) {
  const T alpha = static_cast<T>(p.alpha);
  const kernels::Loops<T>& loops = kernels::loops<T>();
  for_each_head(p, [&](std::int64_t sample, std::int64_t head) {
    const Slice<T> s(p, sample, head);
    if (s.queries == 0) return;
    const Matrix<const T> q = s.of_queries(p.q);
    const Matrix<T> o = s.of_queries(output);
    Packed<T> keys(p.head_dim, s.tokens), values(s.tokens, p.head_dim);
    keys.fill(s.of_tokens(p.k), true);
    values.fill(s.of_tokens(p.v), false);
    const Scratch<T> scores(block_size(s));
    for_each_block(s, [&](const Block& b) {
      const Matrix<T> a{scores.data(), b.cols};
      multiply_columns(b.rows, b.cols, q.from(b.q0), keys, b.k0, a);
      for_each_score(
          s, b, [&](std::int64_t at, std::int64_t n) { loops.scaled_silu(a.data + at, n, alpha, s.scale); },
          [&](std::int64_t at, std::int64_t n) { std::fill_n(a.data + at, n, T(0)); });
      multiply_rows(b.rows, b.cols, a, false, values, b.k0, !b.is_first, o.from(b.q0));
    });
  });
}

template <typename T>
void backward(const AttentionProblem& p, const AttentionGradients& g) {
  const T alpha = static_cast<T>(p.alpha);
  const kernels::Loops<T>& loops = kernels::loops<T>();
  for_each_head(p, [&](std::int64_t sample, std::int64_t head) {
    const Slice<T> s(p, sample, head);
    if (s.tokens == 0) return;
    const Matrix<T> dk = s.of_tokens(g.dk), dv = s.of_tokens(g.dv);
    for (std::int64_t t = 0; t < s.tokens && !g.accumulate_dkv; ++t) {
      std::fill_n(dv.from(t).data, p.head_dim, T(0));
      std::fill_n(dk.from(t).data, p.head_dim, T(0));
    }
    if (s.queries == 0) return;
    const Matrix<const T> q = s.of_queries(p.q), d_o = s.of_queries(g.d_o);
    const Matrix<T> dq = s.of_queries(g.dq);
    Packed<T> k_columns(p.head_dim, s.tokens), v_columns(p.head_dim, s.tokens), k_rows(s.tokens, p.head_dim);
    k_columns.fill(s.of_tokens(p.k), true);
    v_columns.fill(s.of_tokens(p.v), true);
    k_rows.fill(s.of_tokens(p.k), false);
    const Scratch<T> scores(block_size(s)), slopes(block_size(s));
    for_each_block(s, [&](const Block& b) {
      const Matrix<T> a{scores.data(), b.cols}, ds{slopes.data(), b.cols};
      multiply_columns(b.rows, b.cols, q.from(b.q0), k_columns, b.k0, a);
      multiply_columns(b.rows, b.cols, d_o.from(b.q0), v_columns, b.k0, ds);
      for_each_score(
          s, b,
          [&](std::int64_t at, std::int64_t n) {
            loops.scaled_silu_backward(a.data + at, ds.data + at, n, alpha, s.scale);
          },
          [&](std::int64_t at, std::int64_t n) {
            std::fill_n(a.data + at, n, T(0));
            std::fill_n(ds.data + at, n, T(0));
          });
      Packed<T> q_rows(b.rows, p.head_dim), d_o_rows(b.rows, p.head_dim);
      q_rows.fill(q.from(b.q0), false);
      d_o_rows.fill(d_o.from(b.q0), false);
      multiply_rows(b.cols, b.rows, a, true, d_o_rows, 0, true, dv.from(b.k0));
      multiply_rows(b.cols, b.rows, ds, true, q_rows, 0, true, dk.from(b.k0));
      multiply_rows(b.rows, b.cols, ds, false, k_rows, b.k0, !b.is_first || g.accumulate_dq, dq.from(b.q0));
    });
  });
}

// Rows that overlap have no gradients of their own.
void check_rows(const AttentionProblem& p, const char* name, const AttentionInput& rows, std::int64_t count) {
  check(count <= 1 || rows.row_stride >= p.head_dim,
        "attention: {}: the CPU needs a row stride of at least the head size {}, found {}", name, p.head_dim,
        rows.row_stride);
}

// True if there is anything to compute.
bool check_inputs(const AttentionProblem& p) {
  check_attention(p);
  check_offsets(p);
  check_rows(p, "q", p.q, p.query_rows());
  check_rows(p, "k", p.k, p.tokens);
  check_rows(p, "v", p.v, p.tokens);
  return p.samples > 0 && p.tokens > 0;
}

void check_output_rows(const AttentionProblem& p, const char* name, const AttentionRows& rows,
                       std::int64_t count) {
  check_output(p, name, rows, count);
  check_rows(p, name, rows, count);
}

}  // namespace

void attention_forward(const AttentionProblem& p, const AttentionRows& o) {
  if (!check_inputs(p)) return;
  check_output_rows(p, "o", o, p.query_rows());
  if (needs_pairs(p)) return attention_forward_by_pairs(p, o);
  p.type == AttentionType::fp32 ? forward<float>(p, o) : forward<double>(p, o);
}

void attention_backward(const AttentionProblem& p, const AttentionGradients& g) {
  if (!check_inputs(p)) return;
  check_rows(p, "d_o", g.d_o, p.query_rows());
  check_output_rows(p, "dq", g.dq, p.query_rows());
  check_output_rows(p, "dk", g.dk, p.tokens);
  check_output_rows(p, "dv", g.dv, p.tokens);
  if (needs_pairs(p)) return attention_backward_by_pairs(p, g);
  p.type == AttentionType::fp32 ? backward<float>(p, g) : backward<double>(p, g);
}

}  // namespace hstu::cpu
