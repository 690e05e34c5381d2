// One task per (sample, head): blocks of queries meet all keys that one of them sees, so that a softmax finds
// its whole row. A thread keeps one or two such blocks of scores.
#include "hstu/attention/attention_pairs.h"

#include <algorithm>
#include <vector>

#include "hstu/attention/attention_matrices.h"
#include "hstu/attention/head_of_sample.h"
#include "hstu/attention/pair_bias.h"
#include "hstu/base/random.h"
#include "hstu/kernels/dropout.h"
#include "hstu/kernels/math.h"

namespace hstu::cpu {
namespace {

using kernels::Scratch;

// The sum of f(0) to f(n - 1) in an order of its own: 16 sums side by side.
template <typename T, typename Function>
T sum_of(std::int64_t n, const Function& f) {
  constexpr std::int64_t kSums = 16;
  T sums[kSums] = {};
  std::int64_t i = 0;
  for (; i + kSums <= n; i += kSums) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kSums; ++lane) sums[lane] += f(i + lane);
  }
  for (std::int64_t lane = 0; i < n; ++i, ++lane) sums[lane] += f(i);
  for (std::int64_t half = kSums / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

template <typename T>
void scale_run(T* x, std::int64_t n, T factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

// The function of a query's scores, row by row. Rows have the keys [first, end) of the block.
template <typename T>
class Weights {
 public:
  explicit Weights(const AttentionProblem& p, const HeadOfSample<T>& head)
      : p_(p),
        head_(head),
        bias_(p, head),
        factors_(p.dropout.rate > 0 ? head.keys() : 0),
        dropout_{p.dropout.rate, mix64(p.dropout.key + static_cast<std::uint64_t>(head.number())),
                 p.dropout.row_names} {}

  // x: from products of the query and keys to weights, 0 for what it does not see.
  void weigh(std::int64_t query, std::int64_t first, std::int64_t end, T* x) {
    begin_row(query, first, end, x);
    for (const KeyRun& keys : runs_) {
      if (p_.score == ScoreFunction::silu)
        kernels::loops<T>().scaled_silu(x + keys.begin - first, keys.count(), T(1), head_.scale());
    }
    if (p_.score == ScoreFunction::softmax) softmax(first, x, head_.scale());
    for (const KeyRun& keys : runs_) drop(keys, x - first);
  }

  // x becomes weights, and d, the products of the output's gradient and the values, the gradients of the
  // products; the gradients of the tables are added to `tables`.
  void slope(std::int64_t query, std::int64_t first, std::int64_t end, T* x, T* d, BiasGradients<T>& tables) {
    begin_row(query, first, end, x);
    zero_unseen(first, end, d);
    for (const KeyRun& keys : runs_) drop(keys, d - first);
    p_.score == ScoreFunction::silu ? slope_of_silu(first, x, d) : slope_of_softmax(first, x, d);
    const T alpha = static_cast<T>(p_.alpha);
    for (const KeyRun& keys : runs_) {
      bias_.add_gradients(query, keys, d + keys.begin - first, tables);
      scale_run(d + keys.begin - first, keys.count(), alpha);
      drop(keys, x - first);
    }
  }

 private:
  // The runs of keys that the query sees, and their scores.
  void begin_row(std::int64_t query, std::int64_t first, std::int64_t end, T* x) {
    head_.find_runs(query, runs_);
    zero_unseen(first, end, x);
    const T alpha = static_cast<T>(p_.alpha);
    for (const KeyRun& keys : runs_) {
      T* const run = x + keys.begin - first;
      scale_run(run, keys.count(), alpha);
      bias_.add(query, keys, run);
    }
    if (p_.dropout.rate > 0) kernels::dropout_factors(dropout_, head_.query_row(query), end, factors_.data());
  }
  void zero_unseen(std::int64_t first, std::int64_t end, T* x) const {
    std::int64_t done = first;
    for (const KeyRun& keys : runs_) {
      std::fill(x + done - first, x + keys.begin - first, T(0));
      done = keys.end;
    }
    std::fill(x + done - first, x + end - first, T(0));
  }
  // x + j: of key j.
  void drop(const KeyRun& keys, T* x) const {
    if (p_.dropout.rate == 0) return;
    const T* const factors = factors_.data();
#pragma omp simd
    for (std::int64_t j = keys.begin; j < keys.end; ++j) x[j] *= factors[j];
  }
  void softmax(std::int64_t first, T* x, T scale) const {
    if (runs_.empty()) return;
    T largest = x[runs_.front().begin - first], sum = 0;
    for (const KeyRun& keys : runs_) {
      for (std::int64_t j = keys.begin; j < keys.end; ++j) largest = std::max(largest, x[j - first]);
    }
    for (const KeyRun& keys : runs_) {
      T* const run = x + keys.begin - first;
#pragma omp simd
      for (std::int64_t j = 0; j < keys.count(); ++j) run[j] = kernels::exp(run[j] - largest);
      sum += sum_of<T>(keys.count(), [&](std::int64_t j) { return run[j]; });
    }
    const T factor = scale / sum;
    for (const KeyRun& keys : runs_) {
      scale_run(x + keys.begin - first, keys.count(), factor);
    }
  }
  void slope_of_silu(std::int64_t first, T* x, T* d) const {
    for (const KeyRun& keys : runs_)
      kernels::loops<T>().scaled_silu_backward(x + keys.begin - first, d + keys.begin - first, keys.count(),
                                               T(1), head_.scale());
  }
  void slope_of_softmax(std::int64_t first, T* x, T* d) const {
    softmax(first, x, T(1));
    T mean = 0;
    for (const KeyRun& keys : runs_) {
      const T *const weights = x + keys.begin - first, *const slopes = d + keys.begin - first;
      mean += sum_of<T>(keys.count(), [&](std::int64_t j) { return weights[j] * slopes[j]; });
    }
    const T scale = head_.scale();
    for (const KeyRun& keys : runs_) {
      T *const weights = x + keys.begin - first, *const slopes = d + keys.begin - first;
#pragma omp simd
      for (std::int64_t j = 0; j < keys.count(); ++j) {
        weights[j] *= scale;
        slopes[j] = weights[j] * (slopes[j] - mean);
      }
    }
  }

  const AttentionProblem& p_;
  const HeadOfSample<T>& head_;
  PairBias<T> bias_;
  Scratch<T> factors_;
  kernels::Dropout dropout_;
  std::vector<KeyRun> runs_;
};

// Calls body(first query, queries, first key, end of keys) for blocks of queries.
template <typename T, typename Body>
void for_each_query_block(const HeadOfSample<T>& head, const Body& body) {
  for (std::int64_t q0 = 0; q0 < head.queries(); q0 += kQueryBlock) {
    const std::int64_t rows = std::min(kQueryBlock, head.queries() - q0);
    const KeyRun keys = head.keys_of(q0, q0 + rows);
    body(q0, rows, keys.begin / kernels::kPackedColumns * kernels::kPackedColumns, keys.end);
  }
}

template <typename T>
std::int64_t block_size(const HeadOfSample<T>& head) {
  return std::min(kQueryBlock, head.queries()) * head.keys();
}

template <typename T>
void forward_of_heads(const AttentionProblem& p, const AttentionRows& output) {
  for_each_head(p, [&](std::int64_t sample, std::int64_t number) {
    const HeadOfSample<T> head(p, sample, number);
    if (head.queries() == 0) return;
    Packed<T> keys(p.head_dim, head.keys()), values(head.keys(), p.head_dim);
    keys.fill(head.key_matrix(), true);
    values.fill(head.value_matrix(), false);
    const Scratch<T> scores(block_size(head));
    Weights<T> weights(p, head);
    for_each_query_block(head, [&](std::int64_t q0, std::int64_t rows, std::int64_t first, std::int64_t end) {
      const Matrix<T> a{scores.data(), end - first};
      multiply_columns(rows, end - first, head.of_queries(p.q).from(q0), keys, first, a);
      for (std::int64_t r = 0; r < rows; ++r) weights.weigh(q0 + r, first, end, a.from(r).data);
      multiply_rows(rows, end - first, a, false, values, first, false, head.of_queries(output).from(q0));
    });
  });
}

template <typename T>
void backward_of_head(const AttentionProblem& p, const AttentionGradients& g, const HeadOfSample<T>& head,
                      BiasGradients<T>& tables) {
  const Matrix<T> dk = head.of_tokens(g.dk), dv = head.of_tokens(g.dv), dq = head.of_queries(g.dq);
  const Matrix<const T> q = head.of_queries(p.q), d_o = head.of_queries(g.d_o);
  for (std::int64_t t = 0; t < head.keys() - head.past() && !g.accumulate_dkv; ++t) {
    std::fill_n(dv.from(t).data, p.head_dim, T(0));
    std::fill_n(dk.from(t).data, p.head_dim, T(0));
  }
  if (head.queries() == 0) return;
  tables.resize(p, g);
  Packed<T> k_columns(p.head_dim, head.keys()), v_columns(p.head_dim, head.keys()),
      k_rows(head.keys(), p.head_dim);
  k_columns.fill(head.key_matrix(), true);
  v_columns.fill(head.value_matrix(), true);
  k_rows.fill(head.key_matrix(), false);
  const Scratch<T> scores(block_size(head)), slopes(block_size(head));
  Weights<T> weights(p, head);
  for_each_query_block(head, [&](std::int64_t q0, std::int64_t rows, std::int64_t first, std::int64_t end) {
    const std::int64_t columns = end - first;
    const Matrix<T> a{scores.data(), columns}, ds{slopes.data(), columns};
    multiply_columns(rows, columns, q.from(q0), k_columns, first, a);
    multiply_columns(rows, columns, d_o.from(q0), v_columns, first, ds);
    for (std::int64_t r = 0; r < rows; ++r)
      weights.slope(q0 + r, first, end, a.from(r).data, ds.from(r).data, tables);
    multiply_rows(rows, columns, ds, false, k_rows, first, g.accumulate_dq, dq.from(q0));
    // The keys of the past have no gradients.
    const std::int64_t own = std::max(first, head.past());
    if (own >= end) return;
    const Matrix<T> own_a{a.data + own - first, columns}, own_ds{ds.data + own - first, columns};
    Packed<T> q_rows(rows, p.head_dim), d_o_rows(rows, p.head_dim);
    q_rows.fill(q.from(q0), false);
    d_o_rows.fill(d_o.from(q0), false);
    multiply_rows(end - own, rows, own_a, true, d_o_rows, 0, true, dv.from(own - head.past()));
    multiply_rows(end - own, rows, own_ds, true, q_rows, 0, true, dk.from(own - head.past()));
  });
}

template <typename T>
void backward_of_heads(const AttentionProblem& p, const AttentionGradients& g) {
  std::vector<BiasGradients<T>> parts(static_cast<std::size_t>(p.samples * p.heads));
  for_each_head(p, [&](std::int64_t sample, std::int64_t number) {
    backward_of_head(p, g, HeadOfSample<T>(p, sample, number),
                     parts[static_cast<std::size_t>(sample * p.heads + number)]);
  });
  for (const BiasGradients<T>& part : parts) part.add_to(g);
}

}  // namespace

bool needs_pairs(const AttentionProblem& p) {
  return p.score != ScoreFunction::silu || p.bias.any() || p.past.any() || p.mask.hidden_period > 0 ||
         p.dropout.rate > 0;
}

void attention_forward_by_pairs(const AttentionProblem& p, const AttentionRows& o) {
  p.type == AttentionType::fp32 ? forward_of_heads<float>(p, o) : forward_of_heads<double>(p, o);
}

void attention_backward_by_pairs(const AttentionProblem& p, const AttentionGradients& g) {
  p.type == AttentionType::fp32 ? backward_of_heads<float>(p, g) : backward_of_heads<double>(p, g);
}

}  // namespace hstu::cpu
