// The same as reference.h of attention with a softmax. Row i of a sample has row i of its dropout, whose key
// is that of the head.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attention/reference.h"
#include "hstu/attention/hidden_keys.h"
#include "hstu/kernels/dropout.h"

namespace hstu {

// The keys that a query sees, of each the weight and the gradient of its score, and the row of o. Sums are of
// the type Sum. As in programs that keep o and not the weights, the mean of the weights' gradients is d_o
// times o, which is rounded: the gradients of a query that sees one key are not quite 0.
template <typename Sum>
struct SoftmaxRowReference {
  std::vector<std::size_t> keys;
  std::vector<double> weights, gradients;
  std::vector<double> factors;  // of the weights: those of dropout
  Matrix o;

  template <typename Round>
  SoftmaxRowReference(const SampleMask& mask, const HiddenKeys& hidden, std::size_t query, std::size_t width,
                      const double* q, const double* d_o, const Matrix& k, const Matrix& v, double alpha,
                      double scale, const Round& round, const kernels::Dropout& dropout) {
    std::vector<double> all_factors(static_cast<std::size_t>(mask.n));
    kernels::dropout_factors(dropout, static_cast<std::int64_t>(query), mask.n, all_factors.data());
    double top = -std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < static_cast<std::size_t>(mask.n); ++j) {
      const auto i = static_cast<int>(query), key = static_cast<int>(j);
      if (!sees(mask, i, key) || hidden.hide(mask.c, i, key)) continue;
      keys.push_back(j);
      weights.push_back(round(alpha * round(dot_of<Sum>(q, &k[j * width], width))));
      factors.push_back(all_factors[j]);
      gradients.push_back(round(round(dot_of<Sum>(d_o, &v[j * width], width)) * (scale * factors.back())));
      top = std::max(top, weights.back());
    }
    Sum sum = 0;
    for (const double x : weights) sum += static_cast<Sum>(std::exp(x - top));
    o.resize(width);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      weights[i] = round(std::exp(weights[i] - top) / static_cast<double>(sum));
      add_row<Sum>(o.data(), round(weights[i] * scale * factors[i]), &v[keys[i] * width], width);
    }
    for (double& x : o) x = round(x);
    const double mean = dot_of<Sum>(d_o, o.data(), width);
    for (std::size_t i = 0; i < keys.size(); ++i) gradients[i] = round(weights[i] * (gradients[i] - mean));
  }
};

template <typename Sum, typename Round>
AttentionResult reference_softmax(const SampleMask& mask, const HiddenKeys& hidden, int head_dim,
                                  const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& d_o,
                                  double alpha, double scale, const Round& round,
                                  const kernels::Dropout& dropout = {}) {
  const auto n = static_cast<std::size_t>(mask.n), width = static_cast<std::size_t>(head_dim);
  AttentionResult r{Matrix(n * width), Matrix(n * width), Matrix(n * width), Matrix(n * width)};
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at_i = i * width;
    const SoftmaxRowReference<Sum> row(mask, hidden, i, width, &q[at_i], &d_o[at_i], k, v, alpha, scale,
                                       round, dropout);
    std::copy(row.o.begin(), row.o.end(), r.o.begin() + static_cast<std::ptrdiff_t>(at_i));
    for (std::size_t x = 0; x < row.keys.size(); ++x) {
      const std::size_t at_j = row.keys[x] * width;
      const double p = round(row.weights[x] * scale * row.factors[x]), ds = round(row.gradients[x] * alpha);
      add_row<Sum>(&r.dv[at_j], p, &d_o[at_i], width);
      add_row<Sum>(&r.dq[at_i], ds, &k[at_j], width);
      add_row<Sum>(&r.dk[at_j], ds, &q[at_i], width);
    }
  }
  round_all(r, round);
  return r;
}

}  // namespace hstu
