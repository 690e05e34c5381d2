// A problem for the kernels that work pair by pair and row by row, with what it refers to, on the host and on
// a GPU: cached keys, dropout, a relative bias.
#pragma once

#ifdef HSTU_WITH_CUDA

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "attention/device_batch.h"
#include "attention/host_problem.h"

namespace hstu {

struct PairsCase {
  std::string name;
  HostShape shape;
  double dropout = 0;
  std::vector<int> past = {};               // tokens of each past; empty: none
  std::vector<std::int32_t> past_of = {};   // (B)
  std::int64_t positions = 0, buckets = 0;  // 0: no such table
  bool of_heads = false;                    // tables
};

// Both passes of a case, in host memory.
struct PairsResult {
  std::vector<double> o, dq, dk, dv, d_position = {}, d_time = {};
  bool operator==(const PairsResult&) const = default;
};

template <typename T>
class PairsTest {
 public:
  PairsTest(const PairsCase& c, ScoreFunction score, int page = 3)
      : case_(c), host_(c.shape), score_(score), page_(page) {
    std::mt19937 random(c.shape.seed + 3);
    std::normal_distribution<double> normal;
    for (const int length : c.past) {
      lengths_.push_back(length);
      for (int p = 0; p * page_ < length; ++p) pages_.push_back(static_cast<std::int32_t>(pages_.size()));
      page_offsets_.push_back(std::ssize(pages_));
    }
    std::reverse(pages_.begin(), pages_.end());
    past_k_.resize(pages_.size() * static_cast<std::size_t>(page_ * past_stride()));
    past_v_.resize(past_k_.size());
    for (std::vector<double>* all : {&past_k_, &past_v_})
      for (double& x : *all) x = normal(random);
    for (std::int64_t r = 0; r < host_.query_rows(); ++r)
      row_names_.push_back(static_cast<std::int64_t>(random()));
    for (std::vector<double>* all : {&host_.q, &host_.k, &host_.v, &host_.d_o, &past_k_, &past_v_})
      for (double& x : *all)
        x = static_cast<double>(static_cast<float>(static_cast<T>(static_cast<float>(x))));
    const auto table = [&](std::int64_t rows) {
      std::vector<double> all(static_cast<std::size_t>((c.of_heads ? c.shape.heads : 1) * rows));
      for (double& x : all) x = static_cast<double>(static_cast<float>(normal(random)));
      return all;
    };
    if (c.positions > 0) position_ = table(2 * c.positions - 1);
    if (c.buckets > 0) time_ = table(c.buckets + 1);
    for (std::int64_t i = 0, next = 1; i < c.buckets; ++i, next += 1 + next / 3) thresholds_.push_back(next);
    const auto times = [&](std::int64_t rows) {  // in any order, some further apart than 2^31
      std::vector<std::int64_t> all;
      for (std::int64_t row = 0; row < rows; ++row)
        all.push_back(1'700'000'000 + random() % 100'000 + (random() % 8 == 0 ? std::int64_t{1} << 33 : 0));
      return all;
    };
    query_time_ = times(host_.query_rows()), key_time_ = times(host_.tokens());
    past_time_ = times(std::ssize(pages_) * page_);
    for (std::size_t i = 0; i < lengths_.size(); ++i) forget_rest_of_page(i);
  }

  std::int64_t width() const { return std::int64_t{case_.shape.heads} * case_.shape.head_dim; }
  // Of the first sample's token, in a vector of rows.
  std::size_t place_of(std::int64_t token) {
    return static_cast<std::size_t>((host_.offsets()[0] + token) * host_.token_row_view(host_.k).row_stride);
  }
  // The only sample's past and tokens become those of `whole`, which has no past.
  void become_the_end_of(PairsTest& whole) {
    const std::int64_t past = lengths_.front(), first = host_.offsets()[0];
    const auto copy_row = [&](const std::vector<double>& from, std::size_t at, std::vector<double>& to,
                              std::size_t place) { std::copy_n(&from[at], width(), &to[place]); };
    for (std::int64_t t = 0; t < past; ++t) {
      const auto slot =
          static_cast<std::size_t>(pages_[static_cast<std::size_t>(t / page_)] * page_ + t % page_);
      copy_row(whole.host_.k, whole.place_of(t), past_k_, slot * static_cast<std::size_t>(width()));
      copy_row(whole.host_.v, whole.place_of(t), past_v_, slot * static_cast<std::size_t>(width()));
      past_time_[slot] = whole.key_time_[static_cast<std::size_t>(first + t)];
    }
    for (std::int64_t t = 0; t < host_.offsets()[1] - first; ++t) {
      const auto own = static_cast<std::size_t>(first + t), other = own + static_cast<std::size_t>(past);
      copy_row(whole.host_.q, whole.place_of(past + t), host_.q, place_of(t));
      copy_row(whole.host_.k, whole.place_of(past + t), host_.k, place_of(t));
      copy_row(whole.host_.v, whole.place_of(past + t), host_.v, place_of(t));
      key_time_[own] = whole.key_time_[other], query_time_[own] = whole.query_time_[other];
    }
    position_ = whole.position_, time_ = whole.time_;
  }

  PairsResult exact() {
    PairsResult r{memory(host_.query_rows()),
                  memory(host_.query_rows()),
                  memory(host_.tokens()),
                  memory(host_.tokens()),
                  std::vector<double>(position_.size()),
                  std::vector<double>(time_.size())};
    attention_forward(problem(), kHost, host_.query_row_view(r.o));
    attention_backward(problem(), kHost,
                       {.d_o = host_.query_row_view(host_.d_o),
                        .dq = host_.query_row_view(r.dq),
                        .dk = host_.token_row_view(r.dk),
                        .dv = host_.token_row_view(r.dv),
                        .d_position_table = position_.empty() ? nullptr : r.d_position.data(),
                        .d_time_table = time_.empty() ? nullptr : r.d_time.data()});
    return r;
  }

  // `forward`: the kernel that is expected; others than `softmax` have no backward pass.
  PairsResult on_gpu(AttentionKernel forward = AttentionKernel::softmax, bool row_stable = false) {
    const DeviceBytes q(as_type(host_.q)), k(as_type(host_.k)), v(as_type(host_.v)), d_o(as_type(host_.d_o)),
        past_k(as_type(past_k_)), past_v(as_type(past_v_)), offsets(host_.offsets()),
        query_offsets(host_.query_offsets()), contexts(host_.contexts()), targets(host_.targets()),
        scale(std::vector<float>(host_.scale().begin(), host_.scale().end())), pages(pages_),
        page_offsets(page_offsets_), lengths(lengths_), past_of(case_.past_of), names(row_names_),
        position(as_floats(position_)), time(as_floats(time_)), thresholds(thresholds_),
        query_time(query_time_), key_time(key_time_), past_time(past_time_),
        d_position(std::vector<float>(position_.size())), d_time(std::vector<float>(time_.size()));
    AttentionProblem p = problem();
    p.row_stable = row_stable;
    const bool has_backward = forward == AttentionKernel::softmax;
    if (has_backward) p.kernels = AttentionChoice::plain;  // tensor cores compute some of these too
    p.type = std::is_same_v<T, float>    ? AttentionType::fp32
             : std::is_same_v<T, __half> ? AttentionType::fp16
                                         : AttentionType::bf16;
    p.q.data = q.as(), p.k.data = k.as(), p.v.data = v.as();
    p.offsets = offsets.as<std::int64_t>();
    if (p.query_offsets != nullptr) p.query_offsets = query_offsets.as<std::int64_t>();
    if (p.contexts != nullptr) p.contexts = contexts.as<std::int32_t>();
    if (p.targets != nullptr) p.targets = targets.as<std::int32_t>();
    p.sample_scale = scale.as();
    p.dropout.row_names = names.as<std::int64_t>();
    if (p.past.any()) {
      p.past.k = past_k.as(), p.past.v = past_v.as();
      p.past.pages = pages.as<std::int32_t>(), p.past.page_offsets = page_offsets.as<std::int64_t>();
      p.past.lengths = lengths.as<std::int64_t>(), p.past.past_of = past_of.as<std::int32_t>();
      p.past.time = past_time.as<std::int64_t>();
    }
    if (!position_.empty()) p.bias.position_table = position.as();
    if (!time_.empty()) p.bias.time_table = time.as();
    p.bias.thresholds = thresholds.as<std::int64_t>();
    p.bias.query_time = query_time.as<std::int64_t>(), p.bias.key_time = key_time.as<std::int64_t>();
    const AttentionDevice gpu = cuda::attention_device();
    const AttentionRoute route = choose_attention(p, gpu);
    EXPECT_EQ(route.forward, forward) << case_.name << ": " << route.why;
    if (has_backward) {
      EXPECT_EQ(route.backward, AttentionKernel::softmax) << case_.name << ": " << route.why;
    }
    const cuda::AttentionWorkspace needed = cuda::attention_workspace(p, route);
    const DeviceBytes workspace(std::max(needed.forward, needed.backward));
    const AttentionScratch scratch{workspace.as(), static_cast<std::int64_t>(workspace.bytes())};
    const DeviceBytes o(as_type(memory(host_.query_rows()))), dq(as_type(memory(host_.query_rows()))),
        dk(as_type(memory(host_.tokens()))), dv(as_type(memory(host_.tokens())));
    const auto at = [](AttentionRows rows, const DeviceBytes& data) {
      rows.data = data.as();
      return rows;
    };
    const AttentionRows of_queries = host_.query_row_view(host_.q), of_tokens = host_.token_row_view(host_.k);
    attention_forward(p, gpu, at(of_queries, o), scratch);
    if (has_backward)
      attention_backward(p, gpu,
                         {.d_o = at(of_queries, d_o),
                          .dq = at(of_queries, dq),
                          .dk = at(of_tokens, dk),
                          .dv = at(of_tokens, dv),
                          .d_position_table = position_.empty() ? nullptr : d_position.as(),
                          .d_time_table = time_.empty() ? nullptr : d_time.as()},
                         scratch);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << cudaGetErrorString(cudaGetLastError());
    return {read<T>(o), read<T>(dq), read<T>(dk), read<T>(dv), read<float>(d_position), read<float>(d_time)};
  }

 private:
  std::int64_t past_stride() const { return width(); }
  // What a past's last page has behind its tokens is not a number.
  void forget_rest_of_page(std::size_t past) {
    const std::int64_t rest = lengths_[past] % page_;
    if (rest == 0) return;
    const std::int64_t page = pages_[static_cast<std::size_t>(page_offsets_[past + 1]) - 1];
    for (std::vector<double>* all : {&past_k_, &past_v_})
      std::fill(all->begin() + (page * page_ + rest) * past_stride(),
                all->begin() + (page + 1) * page_ * past_stride(), std::numeric_limits<double>::quiet_NaN());
  }
  std::vector<double> memory(std::int64_t rows) const { return host_.nan_memory(rows); }
  static std::vector<T> as_type(const std::vector<double>& from) {
    std::vector<T> to;
    to.reserve(from.size());
    for (const double x : from) to.push_back(static_cast<T>(static_cast<float>(x)));
    return to;
  }
  static std::vector<float> as_floats(const std::vector<double>& from) { return {from.begin(), from.end()}; }
  template <typename Element>
  static std::vector<double> read(const DeviceBytes& from) {
    std::vector<double> all;
    for (const Element x : from.read<Element>(0, static_cast<std::int64_t>(from.bytes() / sizeof(Element))))
      all.push_back(static_cast<double>(static_cast<float>(x)));
    return all;
  }
  AttentionProblem problem() {
    AttentionProblem p = host_.problem();
    p.score = score_;
    p.deterministic = true;
    p.dropout = {case_.dropout, 19, row_names_.data()};
    p.bias = {.position_table = position_.empty() ? nullptr : position_.data(),
              .time_table = time_.empty() ? nullptr : time_.data(),
              .tables = case_.of_heads ? case_.shape.heads : 1,
              .positions = case_.positions,
              .buckets = case_.buckets,
              .thresholds = thresholds_.data(),
              .query_time = query_time_.data(),
              .key_time = key_time_.data()};
    if (case_.past.empty()) return p;
    p.past = {.k = past_k_.data(),
              .v = past_v_.data(),
              .row_stride = past_stride(),
              .head_stride = case_.shape.head_dim,
              .page_tokens = page_,
              .pasts = std::ssize(case_.past),
              .pages = pages_.data(),
              .page_offsets = page_offsets_.data(),
              .lengths = lengths_.data(),
              .past_of = case_.past_of.data(),
              .time = past_time_.data()};
    return p;
  }

  PairsCase case_;
  HostProblem<double> host_;
  ScoreFunction score_;
  int page_;  // tokens
  std::vector<double> past_k_, past_v_;
  std::vector<std::int32_t> pages_;
  std::vector<std::int64_t> page_offsets_{0}, lengths_, row_names_;
  std::vector<double> position_, time_;
  std::vector<std::int64_t> thresholds_, query_time_, key_time_, past_time_;
};

inline void expect_pairs(const std::vector<double>& found, const std::vector<double>& expected, double limit,
                         const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(std::isnan(found[i]), std::isnan(expected[i])) << what << ", element " << i;
    if (std::isnan(expected[i])) continue;
    error += (found[i] - expected[i]) * (found[i] - expected[i]), norm += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(error), limit * std::sqrt(norm)) << what;
}

inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

}  // namespace hstu

#endif  // HSTU_WITH_CUDA
