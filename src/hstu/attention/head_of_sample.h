// One head of one sample for attention_pairs.cc: its keys, those of its past first, and which query sees
// them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "hstu/attention/head_slice.h"
#include "hstu/attention/hidden_keys.h"
#include "hstu/attention/mask.h"
#include "hstu/attention/problem.h"
#include "hstu/base/error.h"

namespace hstu::cpu {

// Keys [begin, end).
struct KeyRun {
  std::int64_t begin, end;
  std::int64_t count() const { return end - begin; }
};

template <typename T>
class HeadOfSample {
 public:
  HeadOfSample(const AttentionProblem& p, std::int64_t sample, std::int64_t number)
      : p_(p), slice_(p, sample, number), keys_(slice_.tokens) {
    add_past(sample);
    mask_ = mask_of_sample(p, sample, keys_);
  }
  HeadOfSample(const HeadOfSample&) = delete;
  HeadOfSample& operator=(const HeadOfSample&) = delete;

  std::int64_t number() const { return slice_.head; }
  std::int64_t queries() const { return slice_.queries; }
  std::int64_t keys() const { return keys_; }
  std::int64_t past() const { return past_; }  // keys without a gradient, the first ones
  T scale() const { return slice_.scale; }
  std::int64_t query_row(std::int64_t query) const { return slice_.first_query + query; }
  // The key that query i is.
  std::int32_t token_of(std::int64_t query) const {
    return static_cast<std::int32_t>(past_ + slice_.queries_from + query);
  }
  // As key_time, of key j.
  std::int64_t time_of(std::int64_t key) const {
    return past_ > 0 ? times_[static_cast<std::size_t>(key)] : p_.bias.key_time[slice_.first_token + key];
  }

  // (keys, D)
  Matrix<const T> key_matrix() const { return past_ > 0 ? own(past_keys_) : of_tokens(p_.k); }
  Matrix<const T> value_matrix() const { return past_ > 0 ? own(past_values_) : of_tokens(p_.v); }
  // Rows of the sample's tokens, without its past, and of its queries.
  template <typename Rows>
  auto of_tokens(const Rows& rows) const {
    return slice_.of_tokens(rows);
  }
  template <typename Rows>
  auto of_queries(const Rows& rows) const {
    return slice_.of_queries(rows);
  }

  // From the first to the last of all keys that one of the queries [begin, end) sees.
  KeyRun keys_of(std::int64_t begin, std::int64_t end) const {
    const Intervals keys = keys_of_queries(mask_, token_of(begin), token_of(end)).any;
    std::int64_t lo = keys_, hi = 0;
    for (const auto& [from, to] : {std::pair{0, keys.end0}, {keys.lo1, keys.hi1}, {keys.lo2, keys.hi2}}) {
      if (from >= to) continue;
      lo = std::min<std::int64_t>(lo, from), hi = std::max<std::int64_t>(hi, to);
    }
    return {std::max<std::int64_t>(lo, 0), std::min(hi, keys_)};
  }
  // The runs of keys that the query sees, ascending.
  void find_runs(std::int64_t query, std::vector<KeyRun>& runs) const {
    const std::int32_t token = token_of(query);
    const Intervals keys = keys_of_query(mask_, token);
    runs.clear();
    std::int64_t done = 0;
    for (const auto& [from, to] : {std::pair{0, keys.end0}, {keys.lo1, keys.hi1}, {keys.lo2, keys.hi2}}) {
      const std::int64_t begin = std::max<std::int64_t>(from, done), end = std::min<std::int64_t>(to, keys_);
      if (begin >= end) continue;
      p_.mask.hidden_period > 0 ? add_visible(token, begin, end, runs) : add_run(begin, end, runs);
      done = end;
    }
  }

 private:
  static void add_run(std::int64_t begin, std::int64_t end, std::vector<KeyRun>& runs) {
    if (!runs.empty() && runs.back().end == begin)
      runs.back().end = end;
    else
      runs.push_back({begin, end});
  }
  // Without hidden keys.
  void add_visible(std::int32_t token, std::int64_t begin, std::int64_t end,
                   std::vector<KeyRun>& runs) const {
    const HiddenKeys hidden{p_.mask.hidden_period, p_.mask.hidden_phase};
    for (std::int64_t j = begin; j < end; ++j)
      if (!hidden.hide(mask_.c, token, static_cast<std::int32_t>(j))) add_run(j, j + 1, runs);
  }

  Matrix<const T> own(const std::vector<T>& rows) const { return {rows.data(), p_.head_dim}; }

  // Keys and values of the past, then those of the sample, in memory of their own.
  void add_past(std::int64_t sample) {
    const CachedKeys& past = p_.past;
    const std::int32_t which = past.any() ? past.past_of[sample] : -1;
    if (which < 0) return;
    check(which < past.pasts, "attention: past_of[{}] is {}, of {} pasts", sample, which, past.pasts);
    const std::int64_t length = past.lengths[which],
                       room = (past.page_offsets[which + 1] - past.page_offsets[which]) * past.page_tokens;
    check(length >= 0 && length <= room, "attention: past {} has {} tokens in pages for {}", which, length,
          room);
    const auto add = [&](const AttentionInput& keys, const AttentionInput& values, std::int64_t row,
                         const std::int64_t* times) {
      const T *const k = slice_.at(keys, row).data, *const v = slice_.at(values, row).data;
      past_keys_.insert(past_keys_.end(), k, k + p_.head_dim);
      past_values_.insert(past_values_.end(), v, v + p_.head_dim);
      times_.push_back(times == nullptr ? 0 : times[row]);
    };
    for (std::int64_t t = 0; t < length; ++t) {
      const std::int64_t page = past.pages[past.page_offsets[which] + t / past.page_tokens];
      add({past.k, past.row_stride, past.head_stride}, {past.v, past.row_stride, past.head_stride},
          page * past.page_tokens + t % past.page_tokens, past.time);
    }
    for (std::int64_t t = 0; t < keys_; ++t) add(p_.k, p_.v, slice_.first_token + t, p_.bias.key_time);
    past_ = length, keys_ += length;
  }

  const AttentionProblem& p_;
  HeadSlice<T> slice_;
  std::int64_t keys_, past_ = 0;
  SampleMask mask_{};
  std::vector<T> past_keys_, past_values_;  // empty without a past
  std::vector<std::int64_t> times_;
};

}  // namespace hstu::cpu
