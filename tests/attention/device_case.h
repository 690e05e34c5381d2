// A jagged batch: what it is, and its inputs in host memory. q, k, v and dO lie in one wider row, whose first
// part is NaN; no sample holds the first and the last rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "attention/reference.h"
#include "hstu/attention/problem.h"
#include "hstu/attention/route.h"
#include "hstu/base/random.h"
#include "hstu/base/threads.h"
#include "hstu/kernels/dropout.h"

namespace hstu {

struct DeviceCase {
  std::string name;
  std::vector<int> lengths;
  int heads = 2, head_dim = 64;
  AttentionType type = AttentionType::bf16;
  AttentionMask mask = {};
  std::vector<int> contexts = {}, targets = {};  // none: empty
  float alpha = 0;                               // 0: 1 / sqrt(D)
  double magnitude = 1;                          // of the inputs
  std::vector<int> poisoned = {};                // samples that hold NaN and Inf instead
  bool per_sample_scale = false;
  bool deterministic = false;
  AttentionKernel kernel = AttentionKernel::hopper;  // of the forward pass; mma is what older GPUs would take
  std::int64_t period = 0;      // rows after which the inputs repeat, so that the host holds few; 0: never
  bool states_longest = false;  // the problem says how long its samples are
  ScoreFunction score = ScoreFunction::silu;
  double dropout = 0;  // rate
};

template <typename T>
T from_double(double x) {
  return static_cast<T>(static_cast<float>(x));
}
template <typename T>
double to_double(T x) {
  return static_cast<double>(static_cast<float>(x));
}
template <typename T>
double round_to(double x) {
  return to_double(from_double<T>(x));
}

template <typename T>
class HostBatch {
 public:
  static constexpr std::int64_t kParts = 5;                // of a row: NaN, then InputPart
  static constexpr std::int64_t kBefore = 3, kAfter = 70;  // rows of no sample
  static constexpr float kScale = 1.0f / 64;
  static constexpr std::uint64_t kDropoutKey = 19;

  explicit HostBatch(const DeviceCase& c) : case_(c) {
    offsets_.push_back(kBefore);
    for (const int n : c.lengths) offsets_.push_back(offsets_.back() + n);
    for (const int n : c.lengths)
      scales_.push_back(c.per_sample_scale ? 1.0f / static_cast<float>(n + 3) : 1.0f);
    period_ = c.period > 0 ? std::min(c.period, tokens()) : tokens();
    rows_.resize(static_cast<std::size_t>(period_ * kParts * width()));
    const std::uint64_t key = std::hash<std::string>()(c.name);
    parallel_blocks(period_, 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) fill(row, key);
    });
    for (const int b : c.poisoned) poison(static_cast<std::size_t>(b));
    for (std::int64_t row = 0; c.dropout > 0 && row < tokens(); ++row)
      row_names_.push_back(static_cast<std::int64_t>(mix64(key + static_cast<std::uint64_t>(row))));
  }

  const DeviceCase& description() const { return case_; }
  std::size_t samples() const { return case_.lengths.size(); }
  std::int64_t tokens() const { return offsets_.back() + kAfter; }
  std::int64_t width() const { return static_cast<std::int64_t>(case_.heads) * case_.head_dim; }
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  const std::vector<float>& scales() const { return scales_; }
  float alpha() const {
    return case_.alpha != 0 ? case_.alpha : 1.0f / std::sqrt(static_cast<float>(case_.head_dim));
  }
  double scale(std::size_t b) const { return static_cast<double>(kScale) * static_cast<double>(scales_[b]); }
  // Of rows whose weights may be dropped, from row `first` on; no names are needed without dropout.
  const std::vector<std::int64_t>& row_names() const { return row_names_; }
  kernels::Dropout dropout(std::int64_t first = 0) const {
    return {case_.dropout, kDropoutKey, row_names_.empty() ? nullptr : row_names_.data() + first};
  }
  bool is_poisoned(std::size_t b) const {
    return std::count(case_.poisoned.begin(), case_.poisoned.end(), static_cast<int>(b)) > 0;
  }

  SampleMask mask_of(std::size_t b) const {
    const int n = case_.lengths[b];
    const int h = n - (case_.targets.empty() ? 0 : std::min(n, case_.targets[b]));
    const int c = case_.contexts.empty() ? 0 : std::min(h, case_.contexts[b]);
    const auto limit = [](int window) { return window < 0 ? kUnlimited : window; };
    return {n, c, h, case_.mask.target_group, limit(case_.mask.left), limit(case_.mask.right)};
  }

  // The first `period()` rows; those of no sample are NaN on the device alone.
  const std::vector<T>& rows() const { return rows_; }
  std::int64_t period() const { return period_; }

  const T* input(InputPart part, std::int64_t row, int head) const {
    return &rows_[static_cast<std::size_t>((row % period_ * kParts + part) * width() +
                                           head * case_.head_dim)];
  }
  // Row `i` of sample b, as reference_row asks.
  void load(std::size_t b, int head, InputPart part, int i, double* to) const {
    const T* const from = input(part, offsets_[b] + i, head);
    for (int d = 0; d < case_.head_dim; ++d) to[d] = to_double(from[d]);
  }
  Matrix matrix(std::size_t b, int head, InputPart part) const {
    const auto size = static_cast<std::size_t>(case_.head_dim);
    Matrix m(static_cast<std::size_t>(case_.lengths[b]) * size);
    for (int i = 0; i < case_.lengths[b]; ++i) load(b, head, part, i, &m[static_cast<std::size_t>(i) * size]);
    return m;
  }

  // Sample `to` gets what sample `from` of another batch holds, of the same length, heads and head size.
  void copy_sample(std::size_t to, const HostBatch& other, std::size_t from) {
    const std::int64_t size = kParts * width();
    std::copy_n(other.rows_.begin() + other.offsets_[from] * size, case_.lengths[to] * size,
                rows_.begin() + offsets_[to] * size);
  }

 private:
  // Normally distributed numbers (Box-Muller), the same for a row whatever is in the others.
  void fill(std::int64_t row, std::uint64_t key) {
    T* const to = &rows_[static_cast<std::size_t>(row * kParts * width())];
    std::fill_n(to, width(), from_double<T>(std::nan("")));
    const auto magnitude = static_cast<float>(case_.magnitude);
    for (std::int64_t i = 0; i < 4 * width(); i += 2) {
      const Philox4 bits = philox(key, static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(i));
      const float radius = magnitude * std::sqrt(-2 * std::log(1 - to_unit_float(bits[0])));
      const float angle = 2 * std::numbers::pi_v<float> * to_unit_float(bits[1]);
      to[width() + i] = static_cast<T>(radius * std::cos(angle));
      to[width() + i + 1] = static_cast<T>(radius * std::sin(angle));
    }
  }
  void poison(std::size_t b) {
    for (std::int64_t row = offsets_[b]; row < offsets_[b + 1]; ++row) {
      T* const to = &rows_[static_cast<std::size_t>(row * kParts * width() + width())];
      for (std::int64_t i = 0; i < 4 * width(); ++i)
        to[i] = from_double<T>(i % 2 == 0 ? std::nan("") : std::numeric_limits<double>::infinity());
    }
  }

  DeviceCase case_;
  std::vector<std::int64_t> offsets_;
  std::vector<float> scales_;
  std::int64_t period_ = 0;
  std::vector<T> rows_;
  std::vector<std::int64_t> row_names_;
};

}  // namespace hstu
