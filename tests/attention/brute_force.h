// Attention as problem.h and mask.h define it, pair by pair, from a description in host memory: what the CPU
// form is compared with. Sums are in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "attention/sees.h"
#include "hstu/attention/problem.h"

namespace hstu {

// The mask of a sample of a description in host memory.
inline SampleMask mask_of_sample(const AttentionProblem& p, std::int64_t b) {
  const int n = static_cast<int>(p.offsets[b + 1] - p.offsets[b]);
  const int h = n - std::clamp(p.targets == nullptr ? 0 : p.targets[b], 0, n);
  const int c = std::clamp(p.contexts == nullptr ? 0 : p.contexts[b], 0, h);
  const auto limit = [](int window) { return window < 0 ? kUnlimited : window; };
  return {n, c, h, p.mask.target_group, limit(p.mask.left), limit(p.mask.right)};
}

template <typename T>
T element(const AttentionInput& rows, std::int64_t t, std::int64_t head, std::int64_t d) {
  return static_cast<const T*>(rows.data)[t * rows.row_stride + head * rows.head_stride + d];
}

// body(query row, key row, head, scale) for every pair of which the query sees the key.
template <typename T, typename Body>
void for_each_pair(const AttentionProblem& p, const Body& body) {
  for (std::int64_t b = 0; b < p.samples; ++b) {
    const SampleMask mask = mask_of_sample(p, b);
    const std::int64_t* const query_offsets = p.offsets_of_queries();
    const std::int64_t first = p.offsets[b], last_query = query_offsets[b + 1];
    const std::int64_t begin = query_offsets[b];
    const int from =
        p.query_first != nullptr ? p.query_first[b] : mask.n - static_cast<int>(last_query - begin);
    const double scale =
        p.scale *
        (p.sample_scale == nullptr ? 1.0 : static_cast<double>(static_cast<const T*>(p.sample_scale)[b]));
    for (std::int64_t row = begin; row < last_query; ++row) {
      const int query = from + static_cast<int>(row - begin);
      for (int key = 0; key < mask.n; ++key) {
        if (!sees(mask, query, key)) continue;
        for (std::int64_t head = 0; head < p.heads; ++head) body(row, first + key, head, scale);
      }
    }
  }
}

// (rows, H, D), one after the other.
struct BruteForce {
  std::vector<double> o, dq, dk, dv;
};

template <typename T>
BruteForce brute_force(const AttentionProblem& p, const AttentionInput& d_o) {
  const std::int64_t width = p.heads * p.head_dim;
  BruteForce r;
  r.o.resize(static_cast<std::size_t>(p.query_rows() * width)), r.dq = r.o;
  r.dk.resize(static_cast<std::size_t>(p.tokens * width)), r.dv = r.dk;
  const auto at = [&](std::vector<double>& m, std::int64_t row, std::int64_t head,
                      std::int64_t d) -> double& {
    return m[static_cast<std::size_t>(row * width + head * p.head_dim + d)];
  };
  for_each_pair<T>(p, [&](std::int64_t i, std::int64_t j, std::int64_t head, double scale) {
    double score = 0, gradient = 0;
    for (std::int64_t d = 0; d < p.head_dim; ++d) {
      score +=
          static_cast<double>(element<T>(p.q, i, head, d)) * static_cast<double>(element<T>(p.k, j, head, d));
      gradient +=
          static_cast<double>(element<T>(d_o, i, head, d)) * static_cast<double>(element<T>(p.v, j, head, d));
    }
    const double x = p.alpha * score, sigma = 1 / (1 + std::exp(-x));
    const double a = scale * x * sigma, ds = scale * p.alpha * gradient * sigma * (1 + x * (1 - sigma));
    for (std::int64_t d = 0; d < p.head_dim; ++d) {
      at(r.o, i, head, d) += a * static_cast<double>(element<T>(p.v, j, head, d));
      at(r.dv, j, head, d) += a * static_cast<double>(element<T>(d_o, i, head, d));
      at(r.dq, i, head, d) += ds * static_cast<double>(element<T>(p.k, j, head, d));
      at(r.dk, j, head, d) += ds * static_cast<double>(element<T>(p.q, i, head, d));
    }
  });
  return r;
}

}  // namespace hstu
