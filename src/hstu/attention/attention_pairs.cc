#include "hstu/attention/attention_pairs.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "hstu/attention/mask.h"
#include "hstu/base/error.h"
#include "hstu/base/threads.h"

namespace hstu::cpu {
namespace {

template <typename T>
const T* row_of(const AttentionInput& rows, std::int64_t row, std::int64_t head) {
  return static_cast<const T*>(rows.data) + row * rows.row_stride + head * rows.head_stride;
}
template <typename T>
T* row_of(const AttentionRows& rows, std::int64_t row, std::int64_t head) {
  return static_cast<T*>(rows.data) + row * rows.row_stride + head * rows.head_stride;
}

template <typename T>
T dot(const T* a, const T* b, std::int64_t n) {
  T sum = 0;
  for (std::int64_t d = 0; d < n; ++d) sum += a[d] * b[d];
  return sum;
}
template <typename T>
void add(T* to, T factor, const T* from, std::int64_t n) {
  for (std::int64_t d = 0; d < n; ++d) to[d] += factor * from[d];
}

template <typename T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

// One head of one sample: its keys, those of its past first.
template <typename T>
class PairsOfSample {
 public:
  PairsOfSample(const AttentionProblem& p, std::int64_t sample, std::int64_t head)
      : p_(p),
        head_(head),
        first_token_(p.offsets[sample]),
        first_query_(p.offsets_of_queries()[sample]),
        queries_(p.offsets_of_queries()[sample + 1] - first_query_),
        scale_(static_cast<T>(p.scale)) {
    if (p.sample_scale != nullptr) scale_ *= static_cast<const T*>(p.sample_scale)[sample];
    add_past(sample);
    past_ = std::ssize(keys_);
    for (std::int64_t t = first_token_; t < p.offsets[sample + 1]; ++t) {
      keys_.push_back(row_of<T>(p.k, t, head));
      values_.push_back(row_of<T>(p.v, t, head));
      times_.push_back(p.bias.key_time == nullptr ? 0 : p.bias.key_time[t]);
    }
    mask_ = sample_mask(
        static_cast<std::int32_t>(keys_.size()), p.contexts == nullptr ? 0 : p.contexts[sample],
        p.targets == nullptr ? 0 : p.targets[sample], p.mask.target_group, p.mask.left, p.mask.right);
    scores_.resize(keys_.size());
    weights_.resize(keys_.size());
  }

  std::int64_t queries() const { return queries_; }
  std::int64_t keys() const { return std::ssize(keys_); }
  std::int64_t past() const { return past_; }  // keys without a gradient, the first ones
  std::int64_t query_row(std::int64_t query) const { return first_query_ + query; }
  std::int64_t key_row(std::int64_t key) const { return first_token_ + key - past_; }
  T scale() const { return scale_; }
  const T* key(std::int64_t j) const { return keys_[static_cast<std::size_t>(j)]; }
  const T* value(std::int64_t j) const { return values_[static_cast<std::size_t>(j)]; }
  // Of the keys that the query of the last weigh() sees.
  T score(std::int64_t j) const { return scores_[static_cast<std::size_t>(j)]; }
  T weight(std::int64_t j) const { return weights_[static_cast<std::size_t>(j)]; }
  const std::vector<std::int64_t>& seen() const { return seen_; }

  // The keys that a query sees, their scores and the function of these.
  void weigh(std::int64_t query) {
    const auto token = static_cast<std::int32_t>(keys() - queries_ + query);
    const Intervals intervals = keys_of_query(mask_, token);
    const T* const q = row_of<T>(p_.q, query_row(query), head_);
    seen_.clear();
    for (std::int32_t j = 0; j < static_cast<std::int32_t>(keys()); ++j) {
      if (!intervals.contains(j) || is_hidden(token, j)) continue;
      seen_.push_back(j);
      scores_[static_cast<std::size_t>(j)] =
          static_cast<T>(p_.alpha) * dot(q, key(j), p_.head_dim) + bias(query, token, j);
    }
    p_.score == ScoreFunction::softmax ? softmax() : silu();
  }

  // Where the tables have the bias of a pair.
  std::int64_t position_of(std::int64_t token, std::int64_t j) const {
    const std::int64_t most = p_.bias.positions - 1;
    return table() * (2 * most + 1) + most + std::clamp(j - token, -most, most);
  }
  std::int64_t bucket_of(std::int64_t query, std::int64_t j) const {
    const std::int64_t *const begin = p_.bias.thresholds, *const end = begin + p_.bias.buckets;
    const std::int64_t distance =
        std::abs(p_.bias.query_time[query_row(query)] - times_[static_cast<std::size_t>(j)]);
    return table() * (p_.bias.buckets + 1) + (std::upper_bound(begin, end, distance) - begin);
  }
  std::int64_t token_of(std::int64_t query) const { return keys() - queries_ + query; }

 private:
  void add_past(std::int64_t sample) {
    const CachedKeys& past = p_.past;
    const std::int32_t which = past.any() ? past.past_of[sample] : -1;
    if (which < 0) return;
    check(which < past.pasts, "attention: past_of[{}] is {}, of {} pasts", sample, which, past.pasts);
    const std::int64_t length = past.lengths[which],
                       room = (past.page_offsets[which + 1] - past.page_offsets[which]) * past.page_tokens;
    check(length >= 0 && length <= room, "attention: past {} has {} tokens in pages for {}", which, length,
          room);
    for (std::int64_t t = 0; t < length; ++t) {
      const std::int64_t page = past.pages[past.page_offsets[which] + t / past.page_tokens];
      const std::int64_t row = page * past.page_tokens + t % past.page_tokens;
      keys_.push_back(row_of<T>({past.k, past.row_stride, past.head_stride}, row, head_));
      values_.push_back(row_of<T>({past.v, past.row_stride, past.head_stride}, row, head_));
      times_.push_back(past.time == nullptr ? 0 : past.time[row]);
    }
  }

  std::int64_t table() const { return p_.bias.tables == 1 ? 0 : head_; }

  bool is_hidden(std::int32_t token, std::int32_t j) const {
    const std::int32_t period = p_.mask.hidden_period, number = j - mask_.c;
    return period > 0 && number >= 0 && number % period == p_.mask.hidden_phase &&
           (token < mask_.c || (token - mask_.c) / period != number / period);
  }

  T bias(std::int64_t query, std::int64_t token, std::int64_t j) const {
    T sum = 0;
    if (p_.bias.position_table != nullptr)
      sum += static_cast<const T*>(p_.bias.position_table)[position_of(token, j)];
    if (p_.bias.time_table != nullptr) sum += static_cast<const T*>(p_.bias.time_table)[bucket_of(query, j)];
    return sum;
  }

  void silu() {
    for (const std::int64_t j : seen_) weights_[static_cast<std::size_t>(j)] = score(j) * sigmoid(score(j));
  }
  void softmax() {
    if (seen_.empty()) return;
    T largest = score(seen_.front()), sum = 0;
    for (const std::int64_t j : seen_) largest = std::max(largest, score(j));
    for (const std::int64_t j : seen_)
      sum += weights_[static_cast<std::size_t>(j)] = std::exp(score(j) - largest);
    for (const std::int64_t j : seen_) weights_[static_cast<std::size_t>(j)] /= sum;
  }

  const AttentionProblem& p_;
  std::int64_t head_, first_token_, first_query_, queries_, past_ = 0;
  T scale_;
  SampleMask mask_{};
  std::vector<const T*> keys_, values_;
  std::vector<std::int64_t> times_;
  std::vector<T> scores_, weights_;
  std::vector<std::int64_t> seen_;
};

template <typename T>
void forward(const AttentionProblem& p, const AttentionRows& o) {
  parallel_blocks(p.samples * p.heads, 1, [&](std::int64_t task, std::int64_t) {
    const std::int64_t head = task % p.heads;
    PairsOfSample<T> pairs(p, task / p.heads, head);
    for (std::int64_t i = 0; i < pairs.queries(); ++i) {
      T* const to = row_of<T>(o, pairs.query_row(i), head);
      std::fill_n(to, p.head_dim, T(0));
      pairs.weigh(i);
      for (const std::int64_t j : pairs.seen())
        add(to, pairs.scale() * pairs.weight(j), pairs.value(j), p.head_dim);
    }
  });
}

// The gradients of the tables by one head of one sample.
template <typename T>
struct BiasGradients {
  std::vector<T> position, time;
};

template <typename T>
void add_all(void* to, const std::vector<T>& from) {
  for (std::size_t i = 0; i < from.size(); ++i) static_cast<T*>(to)[i] += from[i];
}

// Gradients of the scores of the query that `pairs` has weighed, times its scale.
template <typename T>
void slopes_of(const AttentionProblem& p, const PairsOfSample<T>& pairs, const T* d_o,
               std::vector<T>& slopes) {
  T mean = 0;
  for (const std::int64_t j : pairs.seen()) {
    const T d_weight = pairs.scale() * dot(d_o, pairs.value(j), p.head_dim), s = sigmoid(pairs.score(j));
    slopes[static_cast<std::size_t>(j)] =
        p.score == ScoreFunction::softmax ? d_weight : d_weight * s * (1 + pairs.score(j) * (1 - s));
    mean += pairs.weight(j) * d_weight;
  }
  if (p.score != ScoreFunction::softmax) return;
  for (const std::int64_t j : pairs.seen()) {
    T& slope = slopes[static_cast<std::size_t>(j)];
    slope = pairs.weight(j) * (slope - mean);
  }
}

template <typename T>
void backward_of_sample(const AttentionProblem& p, const AttentionGradients& g, std::int64_t sample,
                        std::int64_t head, BiasGradients<T>& bias) {
  PairsOfSample<T> pairs(p, sample, head);
  for (std::int64_t j = pairs.past(); j < pairs.keys() && !g.accumulate_dkv; ++j) {
    std::fill_n(row_of<T>(g.dk, pairs.key_row(j), head), p.head_dim, T(0));
    std::fill_n(row_of<T>(g.dv, pairs.key_row(j), head), p.head_dim, T(0));
  }
  if (g.d_position_table != nullptr)
    bias.position.resize(static_cast<std::size_t>(p.bias.tables * (2 * p.bias.positions - 1)));
  if (g.d_time_table != nullptr)
    bias.time.resize(static_cast<std::size_t>(p.bias.tables * (p.bias.buckets + 1)));
  std::vector<T> slopes(static_cast<std::size_t>(pairs.keys()));
  for (std::int64_t i = 0; i < pairs.queries(); ++i) {
    const T *const d_o = row_of<T>(g.d_o, pairs.query_row(i), head), *const q = row_of<T>(
                                                                         p.q, pairs.query_row(i), head);
    T* const dq = row_of<T>(g.dq, pairs.query_row(i), head);
    if (!g.accumulate_dq) std::fill_n(dq, p.head_dim, T(0));
    pairs.weigh(i);
    slopes_of(p, pairs, d_o, slopes);
    for (const std::int64_t j : pairs.seen()) {
      const T slope = slopes[static_cast<std::size_t>(j)], d_product = static_cast<T>(p.alpha) * slope;
      add(dq, d_product, pairs.key(j), p.head_dim);
      if (g.d_position_table != nullptr)
        bias.position[static_cast<std::size_t>(pairs.position_of(pairs.token_of(i), j))] += slope;
      if (g.d_time_table != nullptr) bias.time[static_cast<std::size_t>(pairs.bucket_of(i, j))] += slope;
      if (j < pairs.past()) continue;
      add(row_of<T>(g.dk, pairs.key_row(j), head), d_product, q, p.head_dim);
      add(row_of<T>(g.dv, pairs.key_row(j), head), pairs.scale() * pairs.weight(j), d_o, p.head_dim);
    }
  }
}

template <typename T>
void backward(const AttentionProblem& p, const AttentionGradients& g) {
  std::vector<BiasGradients<T>> parts(static_cast<std::size_t>(p.samples * p.heads));
  parallel_blocks(p.samples * p.heads, 1, [&](std::int64_t task, std::int64_t) {
    backward_of_sample(p, g, task / p.heads, task % p.heads, parts[static_cast<std::size_t>(task)]);
  });
  for (const BiasGradients<T>& part : parts) {
    if (g.d_position_table != nullptr) add_all(g.d_position_table, part.position);
    if (g.d_time_table != nullptr) add_all(g.d_time_table, part.time);
  }
}

}  // namespace

bool needs_pairs(const AttentionProblem& p) {
  return p.score != ScoreFunction::silu || p.bias.any() || p.past.any() || p.mask.hidden_period > 0;
}

void attention_forward_by_pairs(const AttentionProblem& p, const AttentionRows& o) {
  p.type == AttentionType::fp32 ? forward<float>(p, o) : forward<double>(p, o);
}

void attention_backward_by_pairs(const AttentionProblem& p, const AttentionGradients& g) {
  p.type == AttentionType::fp32 ? backward<float>(p, g) : backward<double>(p, g);
}

}  // namespace hstu::cpu
