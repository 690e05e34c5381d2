// The second model's formulas in plain loops over one sample, without dropout: what the tests compare with.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kinds/ranking_gr_samples.h"

namespace hstu::testing {

using Row = std::vector<double>;

class RankingFormula {
 public:
  RankingFormula(const RankingGr& model, const RankingGrConfig& config) : model_(model), config_(config) {}

  // Logits of the last `candidates` items of sample b, row after row.
  Row logits(const Samples& s, std::size_t b) const {
    const auto begin = static_cast<std::size_t>(s.history_offsets[b]),
               end = static_cast<std::size_t>(s.history_offsets[b + 1]);
    std::vector<Row> rows;
    for (std::size_t c = 0; c < s.context.size(); ++c)
      rows.push_back(mlp("preprocessor.contextual", table_row("c" + std::to_string(c), s.context[c][b])));
    const std::size_t events = end - begin + 1, first_event = begin + b;
    for (std::size_t e = 0; e < events; ++e) {
      const std::int32_t item = e + 1 < events ? s.history_item[begin + e] : s.candidate_item[b];
      rows.push_back(mlp("preprocessor.item", table_row("item", s.items[static_cast<std::size_t>(item)])));
      if (config_.actions)
        rows.push_back(mlp("preprocessor.item", table_row("action", s.event_action[first_event + e])));
    }
    const auto per_event = static_cast<std::size_t>(config_.tokens_of_event());
    const auto scored = static_cast<std::size_t>(s.candidates[b]);
    const std::size_t targets = config_.candidates > 0 ? scored * per_event : 0;
    const std::size_t history = rows.size() - targets;
    for (std::size_t j = 0; j < rows.size(); ++j) {
      const std::size_t p = std::min({j, history, static_cast<std::size_t>(config_.positions) - 1});
      for (std::size_t d = 0; d < rows[j].size(); ++d)
        rows[j][d] = rows[j][d] * std::sqrt(static_cast<double>(config_.dim)) +
                     at("encoder.position", p * rows[j].size() + d);
    }
    for (std::int64_t l = 0; l < config_.layers; ++l)
      rows = layer("layers." + std::to_string(l), rows, targets);
    Row logits;
    for (std::size_t e = events - scored; e < events; ++e) {
      Row y = rows[s.context.size() + e * per_event];
      double norm = 0;
      for (const double v : y) norm += v * v;
      for (double& v : y) v /= std::max(std::sqrt(norm), 1e-6);
      Row h = linear("head.0", y);
      for (double& v : h) v = 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));  // gelu
      for (const double z : linear("head.1", h)) logits.push_back(z);
    }
    return logits;
  }

 private:
  double at(const std::string& name, std::size_t i) const {
    return model_.parameters().find(name).value.data<double>()[i];
  }
  Row table_row(const std::string& feature, std::int64_t id) const {
    const std::int64_t bound = feature == "item" ? 100 : 10;
    const Tensor table = random_tensor({bound, config_.embedding_dim}, DType::f64, derive_key(5, feature));
    const double* const row = table.data<double>() + id * config_.embedding_dim;
    return {row, row + config_.embedding_dim};
  }
  Row linear(const std::string& name, const Row& x) const {
    const std::size_t n = static_cast<std::size_t>(model_.parameters().find(name + ".bias").value.size());
    Row y(n);
    for (std::size_t c = 0; c < n; ++c) {
      y[c] = at(name + ".bias", c);
      for (std::size_t k = 0; k < x.size(); ++k) y[c] += x[k] * at(name + ".weight", k * n + c);
    }
    return y;
  }
  Row mlp(const std::string& name, const Row& x) const {
    Row h = linear(name + ".0", x);
    for (double& v : h) v = std::max(v, 0.0);
    return linear(name + ".1", h);
  }
  Row norm(const std::string& name, const Row& x) const {
    double mean = 0, variance = 0;
    for (const double v : x) mean += v / static_cast<double>(x.size());
    for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
    Row y(x.size());
    for (std::size_t c = 0; c < x.size(); ++c)
      y[c] = (x[c] - mean) / std::sqrt(variance + config_.norm_epsilon) * at(name + ".weight", c) +
             at(name + ".bias", c);
    return y;
  }
  static double silu(double x) { return x / (1 + std::exp(-x)); }

  bool sees(std::size_t i, std::size_t j, std::size_t tokens, std::size_t targets) const {
    const std::size_t contexts = static_cast<std::size_t>(config_.context), history = tokens - targets;
    if (i < contexts) return j < history;
    if (j < contexts) return true;
    if (i < history) return j <= i;
    if (j < history) return true;
    const auto group = static_cast<std::size_t>(config_.target_group);
    return j <= i && (i - history) / group == (j - history) / group;
  }

  std::vector<Row> layer(const std::string& name, const std::vector<Row>& x, std::size_t targets) const {
    const auto d = static_cast<std::size_t>(config_.head_dim),
               heads = static_cast<std::size_t>(config_.heads), w = heads * d;
    std::vector<Row> uvqk, result;
    for (const Row& row : x) {
      uvqk.push_back(linear(name + ".uvqk", norm(name + ".input_norm", row)));
      for (double& v : uvqk.back()) v = silu(v);
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      Row o(w, 0);
      for (std::size_t h = 0; h < heads; ++h) {
        for (std::size_t j = 0; j < x.size(); ++j) {
          if (!sees(i, j, x.size(), targets)) continue;
          double score = 0;
          for (std::size_t c = 0; c < d; ++c)
            score +=
                uvqk[i][2 * w + h * d + c] * uvqk[j][3 * w + h * d + c] / std::sqrt(static_cast<double>(d));
          for (std::size_t c = 0; c < d; ++c)
            o[h * d + c] += silu(score) / static_cast<double>(config_.max_sequence) * uvqk[j][w + h * d + c];
        }
      }
      Row gated = norm(name + ".output_norm", o);
      for (std::size_t c = 0; c < w; ++c) gated[c] *= uvqk[i][c];
      Row out = x[i];
      for (std::size_t c = 0; c < out.size(); ++c)
        for (std::size_t k = 0; k < w; ++k)
          out[c] += gated[k] * at(name + ".output.weight", k * out.size() + c);
      result.push_back(out);
    }
    return result;
  }

  const RankingGr& model_;
  RankingGrConfig config_;
};

}  // namespace hstu::testing
