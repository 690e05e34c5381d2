// A description in host memory with the memory that it refers to: random lengths, masks, strides and values.
// Rows of no sample come first and last; they and the gaps between rows are NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "hstu/attention/problem.h"

namespace hstu {

struct HostShape {
  std::vector<int> lengths = {};
  std::vector<int> queries = {};  // of each sample; empty: every token
  std::vector<int> first =
      {};  // the token that is each sample's first query; empty: queries are the last ones
  std::vector<int> contexts = {}, targets = {};
  AttentionMask mask = {};
  int heads = 2, head_dim = 5;
  int gap = 3;               // elements between neighbouring rows
  bool heads_apart = false;  // all rows of one head come first, then those of the next
  bool per_sample_scale = true;
  unsigned seed = 1;
};

template <typename T>
class HostProblem {
 public:
  explicit HostProblem(const HostShape& shape) : shape_(shape), random_(shape.seed) {
    offsets_ = divide(shape.lengths, 2);
    if (!shape.queries.empty()) query_offsets_ = divide(shape.queries, 1);
    for (std::size_t b = 0; b < shape.lengths.size(); ++b)
      scale_.push_back(static_cast<T>(0.5 + static_cast<double>(random_() % 100) / 100));
    contexts_.assign(shape.contexts.begin(), shape.contexts.end());
    targets_.assign(shape.targets.begin(), shape.targets.end());
    first_.assign(shape.first.begin(), shape.first.end());
    q = filled(first_query(), last_query(), query_rows()),
    d_o = filled(first_query(), last_query(), query_rows());
    k = filled(offsets_.front(), offsets_.back(), tokens()),
    v = filled(offsets_.front(), offsets_.back(), tokens());
  }
  // The same in another type.
  template <typename Other>
  explicit HostProblem(const HostProblem<Other>& other) : HostProblem(other.shape()) {
    q.assign(other.q.begin(), other.q.end()), d_o.assign(other.d_o.begin(), other.d_o.end());
    k.assign(other.k.begin(), other.k.end()), v.assign(other.v.begin(), other.v.end());
    scale_.assign(other.scale().begin(), other.scale().end());
  }

  std::int64_t tokens() const { return offsets_.back() + 3; }
  std::int64_t query_rows() const { return query_offsets_.empty() ? tokens() : query_offsets_.back() + 2; }

  // It refers to this object.
  AttentionProblem problem() {
    AttentionProblem p;
    p.type = std::is_same_v<T, float> ? AttentionType::fp32 : AttentionType::fp64;
    p.samples = static_cast<std::int64_t>(shape_.lengths.size());
    p.tokens = tokens(), p.heads = shape_.heads, p.head_dim = shape_.head_dim;
    p.q = rows(q, query_rows()), p.k = rows(k, tokens()), p.v = rows(v, tokens());
    p.offsets = offsets_.data();
    if (!query_offsets_.empty()) p.query_offsets = query_offsets_.data(), p.queries = query_rows();
    if (!first_.empty()) p.query_first = first_.data();
    if (!contexts_.empty()) p.contexts = contexts_.data();
    if (!targets_.empty()) p.targets = targets_.data();
    p.mask = shape_.mask;
    p.alpha = 0.6, p.scale = 0.25;
    if (shape_.per_sample_scale) p.sample_scale = scale_.data();
    return p;
  }
  // The rows of a vector of query_rows() or tokens() rows.
  AttentionRows rows(std::vector<T>& of, std::int64_t count) const {
    const std::int64_t row = (shape_.heads_apart ? 1 : shape_.heads) * shape_.head_dim + shape_.gap;
    return {of.data(), row, shape_.heads_apart ? count * row : shape_.head_dim};
  }
  AttentionRows query_row_view(std::vector<T>& of) const { return rows(of, query_rows()); }
  AttentionRows token_row_view(std::vector<T>& of) const { return rows(of, tokens()); }

  // Memory for `count` rows, all of it `value`.
  std::vector<T> memory(std::int64_t count, T value) const {
    const std::int64_t row = (shape_.heads_apart ? 1 : shape_.heads) * shape_.head_dim + shape_.gap;
    return std::vector<T>(static_cast<std::size_t>(count * row * (shape_.heads_apart ? shape_.heads : 1)),
                          value);
  }
  std::vector<T> nan_memory(std::int64_t count) const {
    return memory(count, std::numeric_limits<T>::quiet_NaN());
  }

  std::int64_t first_query() const {
    return query_offsets_.empty() ? offsets_.front() : query_offsets_.front();
  }
  std::int64_t last_query() const { return query_offsets_.empty() ? offsets_.back() : query_offsets_.back(); }
  std::vector<std::int64_t>& offsets() { return offsets_; }
  std::vector<std::int64_t>& query_offsets() { return query_offsets_; }
  std::vector<std::int32_t>& query_first() { return first_; }
  std::vector<std::int32_t>& contexts() { return contexts_; }
  std::vector<std::int32_t>& targets() { return targets_; }
  const std::vector<T>& scale() const { return scale_; }
  const HostShape& shape() const { return shape_; }

  std::vector<T> q, k, v, d_o;

 private:
  static std::vector<std::int64_t> divide(const std::vector<int>& counts, std::int64_t begin) {
    std::vector<std::int64_t> offsets{begin};
    for (const int count : counts) offsets.push_back(offsets.back() + count);
    return offsets;
  }
  std::vector<T> filled(std::int64_t begin, std::int64_t end, std::int64_t count) {
    std::vector<T> all = nan_memory(count);
    const AttentionRows to = rows(all, count);
    std::normal_distribution<double> normal;
    for (std::int64_t t = begin; t < end; ++t)
      for (std::int64_t head = 0; head < shape_.heads; ++head)
        for (std::int64_t d = 0; d < shape_.head_dim; ++d)
          all[static_cast<std::size_t>(t * to.row_stride + head * to.head_stride + d)] =
              static_cast<T>(normal(random_));
    return all;
  }

  HostShape shape_;
  std::mt19937 random_;
  std::vector<std::int64_t> offsets_, query_offsets_;
  std::vector<std::int32_t> contexts_, targets_, first_;
  std::vector<T> scale_;
};

// What both passes of the CPU form write.
template <typename T>
struct HostResult {
  std::vector<T> o, dq, dk, dv;
  bool operator==(const HostResult&) const = default;
};

}  // namespace hstu
