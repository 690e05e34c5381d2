#include "hstu/metrics/pointwise.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr double kSmallest = 1e-12;  // bounds the loss of a certain and wrong prediction

double ratio(double a, std::int64_t b) {
  return a / static_cast<double>(b);
}

}  // namespace

double cross_entropy_of(float probability, bool positive) {
  check(probability >= 0.0f && probability <= 1.0f, "metrics: expected a probability in [0, 1], found {}",
        probability);
  const double p = std::clamp(static_cast<double>(probability), kSmallest, 1.0 - kSmallest);
  return -std::log(positive ? p : 1.0 - p);
}

void PointwiseSums::add(float probability, bool positive) {
  const double loss = cross_entropy_of(probability, positive);
  n_ += 1;
  n_pos_ += positive ? 1 : 0;
  n_correct_ += (probability >= 0.5f) == positive ? 1 : 0;
  cross_entropy_.add(loss);
  predictions_.add(static_cast<double>(probability));
}

void PointwiseSums::merge(const PointwiseSums& other) {
  n_ += other.n_;
  n_pos_ += other.n_pos_;
  n_correct_ += other.n_correct_;
  cross_entropy_.merge(other.cross_entropy_);
  predictions_.merge(other.predictions_);
}

std::optional<double> PointwiseSums::accuracy() const {
  if (n_ == 0) return std::nullopt;
  return ratio(static_cast<double>(n_correct_), n_);
}

std::optional<double> PointwiseSums::log_loss() const {
  if (n_ == 0) return std::nullopt;
  return ratio(cross_entropy_.value(), n_);
}

std::optional<double> PointwiseSums::ne() const {
  if (n_pos_ == 0 || n_pos_ == n_) return std::nullopt;
  const double mean = std::clamp(ratio(static_cast<double>(n_pos_), n_), kSmallest, 1.0 - kSmallest);
  const double entropy =
      -(static_cast<double>(n_pos_) * std::log(mean) + static_cast<double>(n_ - n_pos_) * std::log1p(-mean));
  return cross_entropy_.value() / entropy;
}

std::optional<double> PointwiseSums::calibration() const {
  if (n_pos_ == 0) return std::nullopt;
  return ratio(predictions_.value(), n_pos_);
}

Json PointwiseSums::state() const {
  return {{"n", n_},
          {"n_pos", n_pos_},
          {"n_correct", n_correct_},
          {"cross_entropy", cross_entropy_.words()},
          {"predictions", predictions_.words()}};
}

PointwiseSums PointwiseSums::from_state(const Json& state) {
  using Words = std::array<std::uint64_t, 2>;
  PointwiseSums sums;
  sums.n_ = state.at("n");
  sums.n_pos_ = state.at("n_pos");
  sums.n_correct_ = state.at("n_correct");
  sums.cross_entropy_ = FixedSum::from_words(state.at("cross_entropy").get<Words>());
  sums.predictions_ = FixedSum::from_words(state.at("predictions").get<Words>());
  return sums;
}

}  // namespace hstu
