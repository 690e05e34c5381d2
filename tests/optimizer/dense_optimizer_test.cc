#include "hstu/optimizer/dense_optimizer.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "optimizer/support.h"

namespace hstu {
namespace {

using namespace testing_optimizer;

// The formulas of the header, straight and in double.
struct Reference {
  DenseOptimizerConfig config;
  std::vector<double> w, m, v;
  int t = 0;

  void step(double lr, double scale, const std::vector<float>& gradient) {
    m.resize(w.size(), 0.0);
    v.resize(w.size(), 0.0);
    ++t;
    const double exponent = t + (config.adam_starts_at_t2 ? 1 : 0);
    const double rest1 = 1 - std::pow(config.beta1, exponent), rest2 = 1 - std::pow(config.beta2, exponent);
    for (std::size_t i = 0; i < w.size(); ++i) {
      double g = scale * static_cast<double>(gradient[i]);
      if (config.kind != DenseOptimizerKind::adamw) g += config.weight_decay * w[i];
      if (config.kind == DenseOptimizerKind::sgd) {
        m[i] = config.momentum * m[i] + g;
        w[i] -= lr * m[i];
        continue;
      }
      if (config.kind == DenseOptimizerKind::adamw) w[i] -= lr * config.weight_decay * w[i];
      m[i] = config.beta1 * m[i] + (1 - config.beta1) * g;
      v[i] = config.beta2 * v[i] + (1 - config.beta2) * g * g;
      w[i] -= lr / rest1 * m[i] / (std::sqrt(v[i]) / std::sqrt(rest2) + config.epsilon);
    }
  }
};

TEST(DenseOptimizer, FollowsItsFormulaOverManyStepsAtRaggedSizes) {
  std::vector<DenseOptimizerConfig> configs{
      {.kind = DenseOptimizerKind::adam, .beta1 = 0.95},
      {.kind = DenseOptimizerKind::adam, .weight_decay = 0.05, .adam_starts_at_t2 = true},
      {.kind = DenseOptimizerKind::adamw, .beta2 = 0.99, .weight_decay = 0.05},
      {.kind = DenseOptimizerKind::sgd, .weight_decay = 0.05},
      {.kind = DenseOptimizerKind::sgd, .momentum = 0.9},
  };
  for (const DenseOptimizerConfig& config : configs) {
    Parameters parameters;
    std::vector<Reference> references;
    for (const std::int64_t n : {1, 7, 64, 16389}) {
      const auto start = random_values(n, static_cast<std::uint64_t>(n));
      parameters.add("p" + std::to_string(n), start);
      references.push_back({config, {start.begin(), start.end()}, {}, {}});
    }
    DenseOptimizer optimizer(parameters.list(), config);
    for (std::uint64_t step = 0; step < 50; ++step) {
      const double lr = 0.01 / static_cast<double>(1 + step), scale = step % 3 == 0 ? 0.25 : 1.0;
      for (std::size_t p = 0; p < references.size(); ++p) {
        const auto g = random_values(parameters.list()[p]->value.size(), 1000 * (p + 1) + step);
        set_gradient(*parameters.list()[p], g);
        references[p].step(lr, scale, g);
      }
      optimizer.step(lr, scale);
    }
    EXPECT_EQ(optimizer.steps(), 50);
    for (std::size_t p = 0; p < references.size(); ++p) {
      const auto values = values_of(parameters.list()[p]->value);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], references[p].w[i], 2e-6 * (1.0 + std::abs(references[p].w[i])))
            << word_of(kDenseOptimizers, config.kind) << " " << parameters.list()[p]->name << " element "
            << i;
    }
  }
}

// Five steps of torch.optim in float64 (PyTorch 2.15) from {0.5, -1.25, 2} with step s (0 ..) having the
// gradient {0.1 (s + 1), -0.3 + 0.2 s, 1.5 / (s + 1)} and lr 0.01.
void expect_golden(const DenseOptimizerConfig& config, const std::vector<double>& expected) {
  Parameters parameters;
  Parameter& p = parameters.add("p", {0.5f, -1.25f, 2.0f});
  DenseOptimizer optimizer(parameters.list(), config);
  for (int s = 0; s < 5; ++s) {
    const auto x = static_cast<float>(s);
    set_gradient(p, {0.1f * (x + 1.0f), -0.3f + 0.2f * x, 1.5f / (x + 1.0f)});
    optimizer.step(0.01);
  }
  const auto values = values_of(p.value);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(values[i], expected[i], 1e-6) << i;
}

TEST(DenseOptimizer, AdamMatchesPyTorch) {
  expect_golden({.beta1 = 0.95}, {0.452311833836, -1.23088926407, 1.95510742072});
}
TEST(DenseOptimizer, AdamWithWeightDecayMatchesPyTorch) {
  expect_golden({.weight_decay = 0.1}, {0.450787872997, -1.21990706295, 1.9543751896});
}
TEST(DenseOptimizer, AdamWMatchesPyTorch) {
  expect_golden({.kind = DenseOptimizerKind::adamw, .beta2 = 0.99, .weight_decay = 0.1},
                {0.449215341843, -1.22648798248, 1.94597087998});
}
TEST(DenseOptimizer, SgdMatchesPyTorch) {
  expect_golden({.kind = DenseOptimizerKind::sgd, .weight_decay = 0.1},
                {0.482524980008, -1.24877246752, 1.95586611258});
  expect_golden({.kind = DenseOptimizerKind::sgd, .momentum = 0.9}, {0.4682969, -1.2476857, 1.889106});
}
TEST(DenseOptimizer, AdamStartingAtT2MatchesPyTorchAfterADummyStep) {
  expect_golden({.beta1 = 0.95, .adam_starts_at_t2 = true}, {0.459064914944, -1.23531694285, 1.96162318267});
}

TEST(DenseOptimizer, ResultsDoNotDependOnThreads) {
  std::vector<std::vector<float>> results;
  for (const int n : {1, 3}) {
    const int before = threads();
    set_threads(n);
    Parameters parameters;
    Parameter& p = parameters.add("p", random_values(50'003, 1));
    DenseOptimizer optimizer(parameters.list(), {});
    for (std::uint64_t step = 0; step < 3; ++step) {
      set_gradient(p, random_values(50'003, 10 + step));
      optimizer.step(0.1);
    }
    results.push_back(values_of(p.value));
    set_threads(before);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(DenseOptimizer, StateStartsAtZeroHasTheParametersShapeAndIsSufficientToGoOn) {
  Parameters a, b;
  Parameter& p = a.add("w", {1.0f, 2.0f});
  Parameter& q = b.add("w", {1.0f, 2.0f});
  DenseOptimizer first(a.list(), {}), second(b.list(), {});
  ASSERT_EQ(first.state().size(), 2u);
  EXPECT_EQ(first.state()[0].name, "m.w");
  EXPECT_EQ(first.state()[1].name, "v.w");
  EXPECT_EQ(first.state()[1].tensor.shape(), p.value.shape());
  EXPECT_EQ(values_of(first.state()[0].tensor), (std::vector<float>{0.0f, 0.0f}));
  set_gradient(p, {0.5f, -0.25f});
  first.step(0.1);
  std::copy_n(p.value.data<float>(), 2, q.value.mutable_data<float>());
  for (std::size_t i = 0; i < 2; ++i)
    std::copy_n(first.state()[i].tensor.data<float>(), 2, second.state()[i].tensor.mutable_data<float>());
  second.set_steps(first.steps());
  set_gradient(p, {0.125f, 1.0f});
  set_gradient(q, {0.125f, 1.0f});
  first.step(0.1);
  second.step(0.1);
  EXPECT_EQ(values_of(p.value), values_of(q.value));
}

TEST(DenseOptimizer, AStateThatBeganLaterCountsItsOwnUpdates) {
  for (const DenseOptimizerKind kind : {DenseOptimizerKind::adam, DenseOptimizerKind::adamw}) {
    Parameters both, alone;
    Parameter& old = both.add("old", {1.0f, 2.0f});
    Parameter& late = both.add("late", {1.0f, 2.0f});
    Parameter& other = alone.add("late", {1.0f, 2.0f});
    DenseOptimizer continued(both.list(), {.kind = kind}), fresh(alone.list(), {.kind = kind});
    continued.set_steps(1000);
    continued.set_begun({0, 1000});
    for (const float g : {0.5f, -0.25f, 1.0f}) {
      for (Parameter* p : {&old, &late, &other}) set_gradient(*p, {g, 2 * g});
      continued.step(0.1);
      fresh.step(0.1);
      EXPECT_EQ(values_of(late.value), values_of(other.value));
      EXPECT_NE(values_of(old.value), values_of(other.value));
    }
  }
}

// Of one to several blocks, one of no elements.
void add_parameters(Parameters& parameters) {
  for (const std::int64_t size : {70'000, 3, 0, 40'000, 1, 32'768, 100})
    parameters.add(fmt::format("p{}", parameters.list().size()),
                   random_values(size, static_cast<std::uint64_t>(size)));
}

TEST(Shards, AreAllElementsOnceInTheOrderOfRanksAndAboutEqual) {
  Parameters parameters;
  add_parameters(parameters);
  for (const int ranks : {1, 2, 3, 4, 7, 50}) {
    std::size_t parameter = 0;
    std::int64_t at = 0, all = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      std::int64_t mine = 0;
      for (const ParameterBlock& piece : shard_of(parameters.list(), {rank, ranks})) {
        while (at == parameters.list()[parameter]->value.size()) ++parameter, at = 0;
        EXPECT_EQ(piece.parameter, parameter);
        EXPECT_EQ(piece.begin, at);
        EXPECT_GT(piece.end, at);
        mine += piece.end - piece.begin;
        at = piece.end;
      }
      EXPECT_LE(mine, 142'872 / ranks + 2 * 32'768) << ranks;
      all += mine;
    }
    EXPECT_EQ(all, 142'872);
  }
}

// Each rank updates its shard, with the state of that alone: together the values of one that updates all.
TEST(DenseOptimizer, ShardsAreUpdatedToTheBitsOfTheWhole) {
  for (const DenseOptimizerConfig& config :
       {DenseOptimizerConfig{.weight_decay = 0.1},
        DenseOptimizerConfig{.kind = DenseOptimizerKind::sgd, .momentum = 0.9}}) {
    constexpr int kRanks = 3;
    Parameters whole, shared;  // the shards of one set of parameters
    add_parameters(whole);
    add_parameters(shared);
    DenseOptimizer alone(whole.list(), config);
    std::deque<DenseOptimizer> ranks;
    std::size_t bytes = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back(shared.list(), config, host_context(), Shard{rank, kRanks});
      for (const DenseOptimizer::State& state : ranks.back().state()) bytes += state.tensor.bytes();
    }
    EXPECT_EQ(bytes, 142'872 * alone.whole_state().size() / whole.list().size() * sizeof(float));
    for (std::uint64_t step = 0; step < 3; ++step) {
      for (std::size_t p = 0; p < whole.list().size(); ++p) {
        const auto gradient = random_values(whole.list()[p]->value.size(), 100 * step + p);
        set_gradient(*whole.list()[p], gradient);
        set_gradient(*shared.list()[p], gradient);
      }
      alone.step(0.01, 0.5);
      for (DenseOptimizer& rank : ranks) rank.step(0.01, 0.5);
    }
    for (std::size_t p = 0; p < whole.list().size(); ++p)
      EXPECT_EQ(values_of(shared.list()[p]->value), values_of(whole.list()[p]->value)) << p;
  }
}

TEST(DenseOptimizer, RefusesAScaleThatIsNotFiniteBeforeTouchingAnything) {
  Parameters parameters;
  Parameter& p = parameters.add("w", {1.0f});
  DenseOptimizer optimizer(parameters.list(), {});
  EXPECT_THROW(optimizer.step(0.1, std::numeric_limits<double>::quiet_NaN()), InternalError);
  EXPECT_EQ(values_of(p.value), std::vector<float>{1.0f});
  EXPECT_EQ(optimizer.steps(), 0);
}

TEST(DenseOptimizer, RefusesConfigurationsThatCannotWork) {
  Parameters parameters;
  EXPECT_THROW(DenseOptimizer(parameters.list(), {.beta1 = 1.0}), UsageError);
  EXPECT_THROW(DenseOptimizer(parameters.list(), {.epsilon = 0.0}), UsageError);
  EXPECT_THROW(DenseOptimizer(parameters.list(), {.weight_decay = -1.0}), UsageError);
}

}  // namespace
}  // namespace hstu
