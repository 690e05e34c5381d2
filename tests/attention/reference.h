// One head of one sample on the CPU, pair by pair as the mask's definition reads: in double, or with sums in
// fp32 and every intermediate result rounded, as a plain program in PyTorch of that type computes.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "attention/sees.h"

namespace hstu {

using Matrix = std::vector<double>;  // n x D, rows one after the other

struct AttentionResult {
  Matrix o, dq, dk, dv;
};

template <typename Sum, typename Round>
AttentionResult reference_attention(const SampleMask& mask, int head_dim, const Matrix& q, const Matrix& k,
                                    const Matrix& v, const Matrix& d_o, double alpha, double scale,
                                    const Round& round) {
  const auto n = static_cast<std::size_t>(mask.n), width = static_cast<std::size_t>(head_dim);
  AttentionResult r{Matrix(n * width), Matrix(n * width), Matrix(n * width), Matrix(n * width)};
  const auto dot = [&](const Matrix& a, std::size_t i, const Matrix& b, std::size_t j) {
    Sum sum = 0;
    for (std::size_t d = 0; d < width; ++d)
      sum += static_cast<Sum>(a[i * width + d]) * static_cast<Sum>(b[j * width + d]);
    return static_cast<double>(sum);
  };
  const auto add = [&](Matrix& to, std::size_t i, double factor, const Matrix& from, std::size_t j) {
    for (std::size_t d = 0; d < width; ++d) {
      to[i * width + d] =
          static_cast<double>(static_cast<Sum>(to[i * width + d]) +
                              static_cast<Sum>(factor) * static_cast<Sum>(from[j * width + d]));
    }
  };
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (!sees(mask, static_cast<int>(i), static_cast<int>(j))) continue;
      const double x = round(alpha * round(dot(q, i, k, j)));
      const double sigma = 1 / (1 + std::exp(-x));
      const double p = round(round(x * sigma) * scale);
      const double dp = round(round(dot(d_o, i, v, j)) * scale);
      const double ds = round(round(dp * sigma * (1 + x * (1 - sigma))) * alpha);
      add(r.o, i, p, v, j);
      add(r.dv, j, p, d_o, i);
      add(r.dq, i, ds, k, j);
      add(r.dk, j, ds, q, i);
    }
  }
  for (Matrix* all : {&r.o, &r.dq, &r.dk, &r.dv})
    for (double& x : *all) x = round(x);
  return r;
}

// The largest difference, and the root of the summed squares.
struct Distance {
  double largest = 0, sum = 0;
  void add(double a, double b) {
    const double d = std::abs(a - b);
    largest = d <= largest ? largest : d;  // NaN stays
    sum += d * d;
  }
};

}  // namespace hstu
