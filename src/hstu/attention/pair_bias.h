// The relative bias of the pairs of one head of one sample on the CPU, and the gradients of its tables.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "hstu/attention/head_of_sample.h"

namespace hstu::cpu {

// The gradients of the tables by one head of one sample.
template <typename T>
struct BiasGradients {
  std::vector<T> position, time;  // empty: not wanted

  void resize(const AttentionProblem& p, const AttentionGradients& g) {
    if (g.d_position_table != nullptr)
      position.resize(static_cast<std::size_t>(p.bias.tables * (2 * p.bias.positions - 1)));
    if (g.d_time_table != nullptr)
      time.resize(static_cast<std::size_t>(p.bias.tables * (p.bias.buckets + 1)));
  }
  void add_to(const AttentionGradients& g) const {
    for (std::size_t i = 0; i < position.size(); ++i) static_cast<T*>(g.d_position_table)[i] += position[i];
    for (std::size_t i = 0; i < time.size(); ++i) static_cast<T*>(g.d_time_table)[i] += time[i];
  }
};

template <typename T>
class PairBias {
 public:
  PairBias(const AttentionProblem& p, const HeadOfSample<T>& head)
      : b_(p.bias), head_(head), table_(p.bias.tables == 1 ? 0 : head.number()) {
    if (b_.time_table != nullptr) buckets_.resize(static_cast<std::size_t>(head.keys()));
  }

  // Adds the bias of the query and the keys to scores (keys.count()).
  void add(std::int64_t query, const KeyRun& keys, T* scores) {
    if (b_.position_table != nullptr) {
      const T* const table = static_cast<const T*>(b_.position_table);
      for_each_position(query, keys, [&](std::int64_t j, std::int64_t at, std::int64_t n, bool ascends) {
        const T* const row = table + at;
        T* const x = scores + j - keys.begin;
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i) x[i] += row[ascends ? i : 0];
      });
    }
    if (b_.time_table == nullptr) return;
    find_buckets(query, keys);
    const T* const table = static_cast<const T*>(b_.time_table);
    for (std::int64_t j = keys.begin; j < keys.end; ++j)
      scores[j - keys.begin] += table[buckets_[static_cast<std::size_t>(j)]];
  }

  // The gradients of the scores of the query and the keys, for which add() was called last.
  void add_gradients(std::int64_t query, const KeyRun& keys, const T* slopes,
                     BiasGradients<T>& gradients) const {
    if (!gradients.position.empty()) {
      for_each_position(query, keys, [&](std::int64_t j, std::int64_t at, std::int64_t n, bool ascends) {
        T* const sums = gradients.position.data() + at;
        const T* const d = slopes + j - keys.begin;
        if (!ascends) {
          for (std::int64_t i = 0; i < n; ++i) *sums += d[i];
          return;
        }
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i) sums[i] += d[i];
      });
    }
    if (gradients.time.empty()) return;
    for (std::int64_t j = keys.begin; j < keys.end; ++j)
      gradients.time[static_cast<std::size_t>(buckets_[static_cast<std::size_t>(j)])] +=
          slopes[j - keys.begin];
  }

 private:
  // Calls body(j, at, n, ascends) for the parts of `keys`: key j + i has the element at + i of the table,
  // or `at` for all n keys of distances that the table does not have.
  template <typename Body>
  void for_each_position(std::int64_t query, const KeyRun& keys, const Body& body) const {
    const std::int64_t token = head_.token_of(query), most = b_.positions - 1,
                       begin = table_ * (2 * most + 1), low = std::clamp(token - most, keys.begin, keys.end),
                       high = std::clamp(token + most + 1, low, keys.end);
    if (keys.begin < low) body(keys.begin, begin, low - keys.begin, false);
    if (low < high) body(low, begin + most + low - token, high - low, true);
    if (high < keys.end) body(high, begin + 2 * most, keys.end - high, false);
  }
  // Neighbours have neighbouring times: each bucket is found from the one before.
  void find_buckets(std::int64_t query, const KeyRun& keys) {
    const std::int64_t time = b_.query_time[head_.query_row(query)], begin = table_ * (b_.buckets + 1);
    std::int64_t bucket = 0;
    for (std::int64_t j = keys.begin; j < keys.end; ++j) {
      const std::int64_t distance = std::abs(time - head_.time_of(j));
      if (j == keys.begin) {
        bucket = std::upper_bound(b_.thresholds, b_.thresholds + b_.buckets, distance) - b_.thresholds;
      } else {
        while (bucket < b_.buckets && b_.thresholds[bucket] <= distance) ++bucket;
        while (bucket > 0 && b_.thresholds[bucket - 1] > distance) --bucket;
      }
      buckets_[static_cast<std::size_t>(j)] = static_cast<std::int32_t>(begin + bucket);
    }
  }

  const RelativeBias& b_;
  const HeadOfSample<T>& head_;
  std::int64_t table_;
  std::vector<std::int32_t> buckets_;  // the element of the time table of each key
};

}  // namespace hstu::cpu
