#include "hstu/rows/row_optimizer.h"

#include <cmath>

#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/base/error.h"

namespace hstu {
namespace {

using namespace testing_embedding;

// The formulas of the header, in double, one column after the other.
struct Reference {
  RowOptimizer optimizer;
  std::vector<double> w, m, v, sums = {};
  double adagrad = 0.0, t = 0.0;

  void update(double lr, const float* g) {
    const std::size_t dim = w.size();
    m.resize(dim, 0.0);
    v.resize(dim, 0.0);
    sums.resize(dim, 0.0);
    t += 1.0;
    for (std::size_t i = 0; i < dim; ++i)
      adagrad += static_cast<double>(g[i]) * g[i] / static_cast<double>(dim);
    for (std::size_t i = 0; i < dim; ++i) {
      m[i] = optimizer.beta1 * m[i] + (1.0 - optimizer.beta1) * g[i];
      v[i] = optimizer.beta2 * v[i] + (1.0 - optimizer.beta2) * g[i] * g[i];
      const double m_hat = m[i] / (1.0 - std::pow(optimizer.beta1, t));
      const double v_hat = v[i] / (1.0 - std::pow(optimizer.beta2, t));
      sums[i] += static_cast<double>(g[i]) * g[i];
      switch (optimizer.kind) {
        case RowOptimizerKind::rowwise_adagrad:
          w[i] -= lr / (std::sqrt(adagrad) + optimizer.epsilon) * g[i];
          break;
        case RowOptimizerKind::sgd:
          w[i] -= lr * g[i];
          break;
        case RowOptimizerKind::adagrad:
          w[i] -= lr * g[i] / (std::sqrt(sums[i]) + optimizer.epsilon);
          break;
        case RowOptimizerKind::adamw:
          w[i] -= lr * optimizer.weight_decay * w[i];
          [[fallthrough]];
        case RowOptimizerKind::adam:
          w[i] -= lr * m_hat / (std::sqrt(v_hat) + optimizer.epsilon);
          break;
      }
    }
  }
};

TEST(RowOptimizer, FollowsItsFormulaOverManyStepsAtRaggedSizes) {
  for (const auto& [name, kind] : kRowOptimizers) {
    for (const std::int64_t dim : {1, 3, 8, 13, 64, 100}) {
      const RowOptimizer optimizer{.kind = kind, .beta1 = 0.95, .weight_decay = 0.3};
      const auto n = static_cast<std::size_t>(dim);
      std::vector<float> w = random_values(n, 1);
      std::vector<float> state(static_cast<std::size_t>(optimizer.state_width(dim)), 0.0f);
      Reference reference{.optimizer = optimizer, .w = {w.begin(), w.end()}, .m = {}, .v = {}};
      for (std::uint64_t step = 0; step < 200; ++step) {
        const auto g = random_values(n, 100 + step);
        const double lr = 0.01 / static_cast<double>(1 + step);
        optimizer.update(lr, dim, g.data(), w.data(), state.data());
        reference.update(lr, g.data());
      }
      for (std::size_t i = 0; i < n; ++i)
        EXPECT_NEAR(w[i], reference.w[i], 2e-6 * (1.0 + std::abs(reference.w[i])))
            << name << " dim " << dim << " column " << i;
    }
  }
}

TEST(RowOptimizer, OfAFrozenTableChangesNeitherRowNorState) {
  for (const auto& [name, kind] : kRowOptimizers) {
    const RowOptimizer optimizer{.kind = kind, .weight_decay = 0.3, .rate = 0};
    const std::vector<float> row = random_values(8, 1);
    const std::vector<float> state(static_cast<std::size_t>(optimizer.state_width(8)), 0.5f);
    std::vector<float> w = row, s = state;
    optimizer.update(0.1, 8, random_values(8, 2).data(), w.data(), s.data());
    EXPECT_EQ(w, row) << name;
    EXPECT_EQ(s, state) << name;
  }
}

TEST(RowOptimizer, AdagradMatchesTwoStepsByHand) {
  const RowOptimizer optimizer;
  float w[2] = {1.0f, 1.0f}, state[1] = {0.0f};
  const float g[2] = {1.0f, 7.0f};
  optimizer.update(0.5, 2, g, w, state);  // M = (1 + 49) / 2 = 25, rate 0.1
  EXPECT_FLOAT_EQ(state[0], 25.0f);
  EXPECT_FLOAT_EQ(w[0], 0.9f);
  EXPECT_FLOAT_EQ(w[1], 0.3f);
  const float h[2] = {9.0f, 13.0f};
  optimizer.update(1.5, 2, h, w, state);  // M = 25 + (81 + 169) / 2 = 150
  EXPECT_FLOAT_EQ(state[0], 150.0f);
  EXPECT_FLOAT_EQ(w[0], 0.9f - 1.5f / std::sqrt(150.0f) * 9.0f);
}

TEST(RowOptimizer, AZeroGradientLeavesAnAdagradRowAlone) {
  const RowOptimizer optimizer;
  float w[3] = {1.0f, -2.0f, 3.0f}, state[1] = {0.0f};
  const float g[3] = {0.0f, 0.0f, 0.0f};
  optimizer.update(0.5, 3, g, w, state);
  EXPECT_EQ(w[0], 1.0f);
  EXPECT_EQ(w[1], -2.0f);
  EXPECT_EQ(state[0], 0.0f);
}

TEST(RowOptimizer, AdamWMatchesAStepByHand) {
  const RowOptimizer optimizer{.kind = RowOptimizerKind::adamw, .weight_decay = 0.5};
  float w[1] = {2.0f}, state[3] = {};
  const float g[1] = {4.0f};
  optimizer.update(0.1, 1, g, w, state);  // decays to 1.9; the first step of Adam is the rate
  EXPECT_NEAR(w[0], 1.8f, 1e-6);
  EXPECT_EQ(state[2], 1.0f);
}

TEST(RowOptimizer, ElementwiseAdagradMatchesTwoStepsByHand) {
  const RowOptimizer optimizer{.kind = RowOptimizerKind::adagrad};
  float w[2] = {1.0f, 1.0f}, state[2] = {};
  const float g[2] = {3.0f, -8.0f}, h[2] = {4.0f, 6.0f};
  optimizer.update(0.5, 2, g, w, state);
  EXPECT_FLOAT_EQ(w[0], 0.5f);
  EXPECT_FLOAT_EQ(w[1], 1.5f);
  optimizer.update(0.5, 2, h, w, state);  // M = 25 and 100
  EXPECT_FLOAT_EQ(w[0], 0.5f - 0.5f * 4.0f / 5.0f);
  EXPECT_FLOAT_EQ(w[1], 1.5f - 0.5f * 6.0f / 10.0f);
  EXPECT_FLOAT_EQ(state[1], 100.0f);
}

TEST(RowOptimizer, ARowSeenLateTakesAFullFirstAdamStep) {
  // The step count is the row's own: no missing bias correction for rows born after thousands of steps.
  EmbeddingTable table({"item", 10, 1}, {.kind = RowOptimizerKind::adam}, 1);
  const std::vector<float> g{0.125f};
  for (int step = 0; step < 1000; ++step) apply_gradients(table, Ids{0}, g.data(), 0.01);
  const float before = eval_lookup(table, {1})[0];
  apply_gradients(table, Ids{1}, g.data(), 0.01);
  EXPECT_NEAR(before - eval_lookup(table, {1})[0], 0.01, 1e-6);
}

TEST(RowOptimizer, KnowsItsNames) {
  EXPECT_EQ(parse_word(kRowOptimizers, "rowwise_adagrad", "kind"), RowOptimizerKind::rowwise_adagrad);
  EXPECT_EQ(parse_word(kRowOptimizers, "adam", "kind"), RowOptimizerKind::adam);
  EXPECT_THROW(parse_word(kRowOptimizers, "adamx", "kind"), UsageError);
}

}  // namespace
}  // namespace hstu
