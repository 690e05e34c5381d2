// The rule for results of a type with few digits. Both errors are against fp64; the reference is the same
// computation with every intermediate result rounded to the type, as a plain program in PyTorch computes it.
//
//   norm      the root of the sum of squared errors is at most twice the reference's
//   largest   the largest error is at most four times the reference's
//
// The norm is what proves a kernel. The largest of many errors is a matter of chance: of two fp32
// computations that are equally good (BLAS and a plain loop, 731 random batches of 1,000 elements or more)
// the norms differed by a factor of at most 1.28, the largest errors by up to 2.53. Fewer elements prove
// nothing.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <string>

#include <fmt/format.h>

namespace hstu {

inline constexpr std::array<const char*, 4> kOutputNames{"o", "dq", "dk", "dv"};
inline constexpr double kMostNorm = 2, kMostLargest = 4;
inline constexpr std::size_t kFewestElements = 1000;  // of an output

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
  std::array<std::size_t, 4> elements{};

  void add(std::size_t output, double value, double rounded_value, double exact) {
    found[output].add(value, exact);
    rounded[output].add(rounded_value, exact);
    ++elements[output];
  }
  void merge(const Errors& other) {
    for (std::size_t i = 0; i < 4; ++i) {
      found[i].merge(other.found[i]), rounded[i].merge(other.rounded[i]);
      elements[i] += other.elements[i];
    }
  }
  // "" if the rule holds.
  std::string complaint() const {
    std::string text;
    for (std::size_t i = 0; i < 4; ++i) {
      if (elements[i] > 0 && elements[i] < kFewestElements)
        text +=
            fmt::format("{}: {} elements were compared, too few to judge\n", kOutputNames[i], elements[i]);
      const double norm = std::sqrt(found[i].sum), rounded_norm = std::sqrt(rounded[i].sum);
      if (norm <= kMostNorm * rounded_norm + 1e-30 &&
          found[i].largest <= kMostLargest * rounded[i].largest + 1e-30)
        continue;
      text += fmt::format(
          "{}: norm of the errors {:.3g} against {:.3g} of the reference, largest {:.3g} against {:.3g}\n",
          kOutputNames[i], norm, rounded_norm, found[i].largest, rounded[i].largest);
    }
    return text;
  }
};

}  // namespace hstu
