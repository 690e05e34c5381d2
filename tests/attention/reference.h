// One head of one sample on the CPU, pair by pair as the mask's definition reads: in double, or with sums in
// fp32 and every intermediate result rounded, as a plain program in PyTorch of that type computes.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "attention/sees.h"

namespace hstu {

using Matrix = std::vector<double>;  // rows of D one after the other

struct AttentionResult {
  Matrix o, dq, dk, dv;
  const Matrix& operator[](std::size_t output) const {
    return output == 0 ? o : output == 1 ? dq : output == 2 ? dk : dv;
  }
};

// What a query and a key that it sees give each other: O_i += p V_j, dV_j += p dO_i, dQ_i += ds K_j,
// dK_j += ds Q_i.
struct PairFactors {
  double p, ds;
};

template <typename Sum>
double dot_of(const double* a, const double* b, std::size_t width) {
  Sum sum = 0;
  for (std::size_t d = 0; d < width; ++d) sum += static_cast<Sum>(a[d]) * static_cast<Sum>(b[d]);
  return static_cast<double>(sum);
}

template <typename Sum, typename Round>
PairFactors factors_of(const double* q, const double* d_o, const double* k, const double* v,
                       std::size_t width, double alpha, double scale, const Round& round) {
  const double x = round(alpha * round(dot_of<Sum>(q, k, width)));
  const double sigma = 1 / (1 + std::exp(-x));
  const double dp = round(round(dot_of<Sum>(d_o, v, width)) * scale);
  return {round(round(x * sigma) * scale), round(round(dp * sigma * (1 + x * (1 - sigma))) * alpha)};
}

template <typename Sum>
void add_row(double* to, double factor, const double* from, std::size_t width) {
  for (std::size_t d = 0; d < width; ++d)
    to[d] =
        static_cast<double>(static_cast<Sum>(to[d]) + static_cast<Sum>(factor) * static_cast<Sum>(from[d]));
}

template <typename Round>
void round_all(AttentionResult& r, const Round& round) {
  for (Matrix* all : {&r.o, &r.dq, &r.dk, &r.dv})
    for (double& x : *all) x = round(x);
}

template <typename Sum, typename Round>
AttentionResult reference_attention(const SampleMask& mask, int head_dim, const Matrix& q, const Matrix& k,
                                    const Matrix& v, const Matrix& d_o, double alpha, double scale,
                                    const Round& round) {
  const auto n = static_cast<std::size_t>(mask.n), width = static_cast<std::size_t>(head_dim);
  AttentionResult r{Matrix(n * width), Matrix(n * width), Matrix(n * width), Matrix(n * width)};
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (!sees(mask, static_cast<int>(i), static_cast<int>(j))) continue;
      const std::size_t at_i = i * width, at_j = j * width;
      const PairFactors f =
          factors_of<Sum>(&q[at_i], &d_o[at_i], &k[at_j], &v[at_j], width, alpha, scale, round);
      add_row<Sum>(&r.o[at_i], f.p, &v[at_j], width);
      add_row<Sum>(&r.dv[at_j], f.p, &d_o[at_i], width);
      add_row<Sum>(&r.dq[at_i], f.ds, &k[at_j], width);
      add_row<Sum>(&r.dk[at_j], f.ds, &q[at_i], width);
    }
  }
  round_all(r, round);
  return r;
}

// The same of one row alone: o and dq as a query, dk and dv as a key. `load(input, row, to)` writes a row of
// kQ, kK, kV or kDo.
enum InputPart { kQ = 1, kK, kV, kDo };

template <typename Sum, typename Load, typename Round>
AttentionResult reference_row(const SampleMask& mask, int head_dim, int row, const Load& load, double alpha,
                              double scale, const Round& round) {
  const auto width = static_cast<std::size_t>(head_dim);
  AttentionResult r{Matrix(width), Matrix(width), Matrix(width), Matrix(width)};
  Matrix q(width), k(width), v(width), d_o(width), a(width), b(width);
  load(kQ, row, q.data()), load(kK, row, k.data()), load(kV, row, v.data()), load(kDo, row, d_o.data());
  for (int x = 0; x < mask.n; ++x) {
    if (sees(mask, row, x)) {
      load(kK, x, a.data()), load(kV, x, b.data());
      const PairFactors f =
          factors_of<Sum>(q.data(), d_o.data(), a.data(), b.data(), width, alpha, scale, round);
      add_row<Sum>(r.o.data(), f.p, b.data(), width);
      add_row<Sum>(r.dq.data(), f.ds, a.data(), width);
    }
    if (sees(mask, x, row)) {
      load(kQ, x, a.data()), load(kDo, x, b.data());
      const PairFactors f =
          factors_of<Sum>(a.data(), b.data(), k.data(), v.data(), width, alpha, scale, round);
      add_row<Sum>(r.dv.data(), f.p, b.data(), width);
      add_row<Sum>(r.dk.data(), f.ds, a.data(), width);
    }
  }
  round_all(r, round);
  return r;
}

}  // namespace hstu
