// The rows of one head of one sample, which both CPU forms of attention read, and its mask.
#pragma once

#include <cstdint>

#include "hstu/attention/attention_matrices.h"
#include "hstu/attention/mask.h"
#include "hstu/attention/problem.h"

namespace hstu::cpu {

template <typename T>
struct HeadSlice {
  HeadSlice(const AttentionProblem& p, std::int64_t sample, std::int64_t number)
      : head(number),
        first_token(p.offsets[sample]),
        first_query(p.offsets_of_queries()[sample]),
        tokens(p.offsets[sample + 1] - first_token),
        queries(p.offsets_of_queries()[sample + 1] - first_query),
        queries_from(p.query_first != nullptr ? p.query_first[sample] : tokens - queries),
        scale(static_cast<T>(p.scale)) {
    if (p.sample_scale != nullptr) scale *= static_cast<const T*>(p.sample_scale)[sample];
  }

  // Rows of the sample's tokens and of its queries.
  template <typename Rows>
  auto of_tokens(const Rows& rows) const {
    return at(rows, first_token);
  }
  template <typename Rows>
  auto of_queries(const Rows& rows) const {
    return at(rows, first_query);
  }
  Matrix<const T> at(const AttentionInput& rows, std::int64_t row) const {
    return {static_cast<const T*>(rows.data) + row * rows.row_stride + head * rows.head_stride,
            rows.row_stride};
  }
  Matrix<T> at(const AttentionRows& rows, std::int64_t row) const {
    return {static_cast<T*>(rows.data) + row * rows.row_stride + head * rows.head_stride, rows.row_stride};
  }

  std::int64_t head, first_token, first_query, tokens, queries;
  std::int64_t queries_from;  // the token that is the first query
  T scale;
};

// Of a sample with so many keys.
inline SampleMask mask_of_sample(const AttentionProblem& p, std::int64_t sample, std::int64_t keys) {
  return sample_mask(static_cast<std::int32_t>(keys), p.contexts == nullptr ? 0 : p.contexts[sample],
                     p.targets == nullptr ? 0 : p.targets[sample], p.mask.target_group, p.mask.left,
                     p.mask.right);
}

}  // namespace hstu::cpu
