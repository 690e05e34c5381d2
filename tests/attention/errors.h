// The rule for results of a type with few digits: at most twice the error of the same computation with every
// intermediate result rounded to that type, both against double.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <string>

#include <fmt/format.h>

namespace hstu {

inline constexpr std::array<const char*, 4> kOutputNames{"o", "dq", "dk", "dv"};

// The largest difference, and the sum of squares.
struct Distance {
  double largest = 0, sum = 0;
  void add(double a, double b) {
    const double d = std::abs(a - b);
    merge({d, d * d});
  }
  void merge(const Distance& other) {
    if (!(other.largest <= largest)) largest = std::isnan(largest) ? largest : other.largest;  // NaN stays
    sum += other.sum;
  }
};

// Of o, dq, dk and dv, over any number of elements.
struct Errors {
  std::array<Distance, 4> found, rounded;

  void add(std::size_t output, double value, double rounded_value, double exact) {
    found[output].add(value, exact);
    rounded[output].add(rounded_value, exact);
  }
  void merge(const Errors& other) {
    for (std::size_t i = 0; i < 4; ++i) found[i].merge(other.found[i]), rounded[i].merge(other.rounded[i]);
  }
  // "" where the rule holds.
  std::string complaint() const {
    std::string text;
    for (std::size_t i = 0; i < 4; ++i) {
      if (found[i].largest <= 2 * rounded[i].largest + 1e-30 && found[i].sum <= 4 * rounded[i].sum + 1e-60)
        continue;
      text += fmt::format(
          "{}: largest error {:.3g} against {:.3g} of the rounded computation, root of squares "
          "{:.3g} against {:.3g}\n",
          kOutputNames[i], found[i].largest, rounded[i].largest, std::sqrt(found[i].sum),
          std::sqrt(rounded[i].sum));
    }
    return text;
  }
};

}  // namespace hstu
