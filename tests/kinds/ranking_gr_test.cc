// The second model against its formulas, its gradients against finite differences, and what may not reach a
// score.
#include "hstu/kinds/ranking_gr/ranking_gr.h"

#include <gtest/gtest.h>

#include "hstu/base/threads.h"
#include "hstu/kinds/ranking_gr/ranking_gr_objective.h"
#include "kinds/ranking_gr_formula.h"

namespace hstu {
namespace {

using testing::ranking_batch;
using testing::ranking_features;
using testing::ranking_logits;
using testing::ranking_rows;
using testing::ranking_samples;
using testing::small_ranking;

RankingGr make(const RankingGrConfig& config) {
  return {config, ranking_features(config.context), {"action", 10}, 3, DType::f64};
}

void expect_formula(const RankingGrConfig& config) {
  const RankingGr model = make(config);
  const Samples samples = ranking_samples(config.candidates, config.context);
  std::vector<double> expected;
  for (std::size_t b = 0; b < 3; ++b) {
    const auto of_sample = testing::RankingFormula(model, config).logits(samples, b);
    expected.insert(expected.end(), of_sample.begin(), of_sample.end());
  }
  const std::vector<double> found = ranking_logits(model, samples);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << i;
}

TEST(RankingGr, IsItsFormulaAtEveryItem) {
  expect_formula(small_ranking());
}

TEST(RankingGr, IsItsFormulaWithCandidatesAndGroups) {
  for (const std::int64_t candidates : {1, 2, 9}) {
    for (const std::int64_t group : {1, 2, 100}) {
      RankingGrConfig config = small_ranking(candidates);
      config.target_group = group;
      SCOPED_TRACE(fmt::format("{} candidates, groups of {}", candidates, group));
      expect_formula(config);
    }
  }
}

TEST(RankingGr, IsItsFormulaWithoutActionsOrContext) {
  for (const std::int64_t candidates : {0, 2}) {
    RankingGrConfig config = small_ranking(candidates);
    config.actions = false;
    expect_formula(config);
    config.actions = true;
    config.context = 0;
    expect_formula(config);
  }
}

// Every parameter and every row, with dropout.
void expect_gradients(const RankingGrConfig& config) {
  const RankingGr model = make(config);
  const Batch batch = ranking_batch(model, ranking_samples(config.candidates, config.context));
  const std::vector<Variable> rows = ranking_rows(model, batch);
  const Draws draws(5, 17);
  const RankingGrObjective objective(config);
  const auto loss = [&](Tape& tape, const std::vector<Variable>& leaves) {
    return objective.loss({tape, batch, leaves}, model.forward(tape, batch, leaves, draws));
  };
  Tape tape;
  tape.backward(loss(tape, rows));
  constexpr double kStep = 1e-4;
  const int before_threads = threads();
  set_threads(1);  // the batch is too small for more
  const auto expect_near = [&](Tensor value, const Tensor& gradient, const std::string& name) {
    for (std::int64_t e = 0; e < value.size(); ++e) {
      double* const x = value.mutable_data<double>() + e;
      const double before = *x;
      const auto at = [&](double shift) {
        *x = before + shift;
        Tape forward(false);
        return loss(forward, rows).value().data<double>()[0];
      };
      // Of fourth order: without a residual the norms amplify the curvature.
      const double expected =
          (8 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12 * kStep);
      *x = before;
      ASSERT_NEAR(gradient.data<double>()[e], expected, 1e-7 * (1 + std::abs(expected)))
          << name << " element " << e;
    }
  };
  for (const Parameter* p : model.parameters().all()) expect_near(p->value, p->gradient, p->name);
  for (std::size_t f = 0; f < rows.size(); ++f)
    expect_near(rows[f].value(), rows[f].gradient(), model.features()[f].name);
  set_threads(before_threads);
}

TEST(RankingGr, GradientsOfSeveralTasksAreFiniteDifferences) {
  expect_gradients(small_ranking());
}

TEST(RankingGr, GradientsOfOneClassWithCandidatesAreFiniteDifferences) {
  RankingGrConfig config = small_ranking(2);
  config.head = RankingHead::multi_class;
  config.positive_classes = {"b", "c"};
  config.residual = false;
  expect_gradients(config);
}

// Trap: the mean over labels times tasks, or the mean of means of parts.
TEST(RankingGr, DividesTheLossByTheNumberOfLabels) {
  const RankingGr model = make(small_ranking());
  Batch batch = ranking_batch(model, ranking_samples());
  ASSERT_EQ(batch.supervised, 9);
  const Tensor logits = Tensor::zeros({9, 3}, DType::f64);
  Tape tape(false);
  const auto loss = [&] {
    return RankingGrObjective(small_ranking())
        .loss({tape, batch}, Variable(logits))
        .value()
        .data<double>()[0];
  };
  EXPECT_NEAR(loss(), 3 * std::log(2.0), 1e-12);  // three tasks of an ignorant model
  batch.supervised = 18;                          // the other half of the global batch is elsewhere
  EXPECT_NEAR(loss(), 1.5 * std::log(2.0), 1e-12);
}

TEST(RankingGr, NoScoreKnowsItsOwnActionOrALaterEvent) {
  const RankingGr model = make(small_ranking());
  const Samples samples = ranking_samples();
  const std::vector<double> before = ranking_logits(model, samples);
  constexpr std::size_t kTasks = 3, kFirst = 4;  // the events of sample 2 are 4 to 8
  for (std::size_t e = kFirst; e < 9; ++e) {
    Samples changed = samples;
    changed.event_action[e] = 5;
    const std::vector<double> after = ranking_logits(model, changed);
    for (std::size_t r = 0; r < kFirst; ++r)
      EXPECT_EQ(before[r * kTasks], after[r * kTasks]) << "another sample's event " << e;
  }
  // Contextual tokens see the whole history, and every item sees them: without them no item sees its action.
  RankingGrConfig plain = small_ranking();
  plain.context = 0;
  plain.contextual_mask = false;
  const RankingGr causal = make(plain);
  const Samples without = ranking_samples(0, 0);
  const std::vector<double> first = ranking_logits(causal, without);
  for (std::size_t e = kFirst; e < 9; ++e) {
    Samples changed = without;
    changed.event_action[e] = 5;
    const std::vector<double> after = ranking_logits(causal, changed);
    for (std::size_t r = kFirst; r < 9; ++r) {
      if (r <= e)
        EXPECT_EQ(first[r * kTasks], after[r * kTasks]) << "item " << r << ", action " << e;
      else
        EXPECT_NE(first[r * kTasks], after[r * kTasks]) << "item " << r << ", action " << e;
    }
  }
}

TEST(RankingGr, CandidatesAreScoredApartFromEachOther) {
  const RankingGr model = make(small_ranking(2));
  Samples samples = ranking_samples(2);
  const std::vector<double> before = ranking_logits(model, samples);  // candidates: 1, 2, 2
  ASSERT_EQ(before.size(), 5u * 3);
  samples.candidate_item[2] = 3;
  samples.event_action[8] = 5;
  const std::vector<double> after = ranking_logits(model, samples);
  for (std::size_t i = 0; i < 4 * 3; ++i) EXPECT_EQ(before[i], after[i]) << i;
  EXPECT_NE(before[4 * 3], after[4 * 3]);
}

// An evaluation scores the anchor alone: the same number as in training, where all items are scored.
TEST(RankingGr, ScoresTheAnchorTheSameAloneAndAmongAllItems) {
  const RankingGr model = make(small_ranking());
  const std::vector<double> all = ranking_logits(model, ranking_samples());
  Samples samples = ranking_samples();
  samples.candidates = {1, 1, 1};
  const std::vector<double> alone = ranking_logits(model, samples);
  const std::size_t last[] = {0, 3, 8};
  for (std::size_t b = 0; b < 3; ++b)
    for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(alone[3 * b + k], all[3 * last[b] + k], 1e-13);
}

TEST(RankingGr, EventsThatCannotBeAnchorsHaveNoLabel) {
  const RankingGr model = make(small_ranking());
  Samples samples = ranking_samples();
  const std::vector<double> all = ranking_logits(model, samples);
  samples.event_rankable = {1, 0, 1, 1, 1, 0, 0, 1, 1};
  const Batch batch = ranking_batch(model, samples);
  const auto label = batch.values<std::int64_t>(ranking_gr::kExampleLabel);
  EXPECT_EQ(std::vector(label.begin(), label.end()), (std::vector<std::int64_t>{2, 1, 2, 1, 0, 1}));
  EXPECT_EQ(RankingGrObjective(small_ranking()).examples(batch).user,
            (std::vector<std::int64_t>{7, 8, 8, 9, 9, 9}));
  const std::vector<double> some = ranking_logits(model, samples);
  EXPECT_NEAR(some[3 * 1], all[3 * 2], 1e-13);
}

TEST(RankingGr, AMultiClassHeadReportsThePositiveClassesAndEachClass) {
  RankingGrConfig config = small_ranking();
  config.head = RankingHead::multi_class;
  config.positive_classes = {"b", "c"};
  const RankingGrObjective objective(config);
  EXPECT_EQ(objective.tasks(), (std::vector<std::string>{"positive", "a", "b", "c"}));
  const std::vector<float> logits{1, 2, 3};
  const double sum = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
  EXPECT_NEAR(objective.probability(logits, 0), (std::exp(2.0) + std::exp(3.0)) / sum, 1e-12);
  EXPECT_NEAR(objective.probability(logits, 1), std::exp(1.0) / sum, 1e-12);
  const Examples examples = objective.examples(ranking_batch(make(config), ranking_samples()));
  EXPECT_EQ(std::vector(examples.label.begin(), examples.label.begin() + 8),
            (std::vector<std::uint8_t>{1, 0, 0, 1, 0, 1, 0, 0}));  // classes 2 and 0
}

// The published benchmark: 8 layers, 1,024 wide, three contextual features.
TEST(RankingGr, HasTheBenchmarksNumberOfParameters) {
  RankingGrConfig config;
  config.embedding_dim = 128;
  config.dim = 1024;
  config.layers = 8;
  config.heads = 4;
  config.head_dim = 256;
  config.labels.assign(8, "task");
  config.context = 3;
  config.max_sequence = 8195;
  SampleFeatures features({"item", 10});
  features.context.assign(3, {"c", 10});
  const std::int64_t layer = 2 * 1024 + 1024 * 4096 + 4096 + 2 * 1024 + 1024 * 1024;
  const std::int64_t mlp = 128 * 1024 + 1024 + 1024 * 1024 + 1024;
  const std::int64_t head = 1024 * 512 + 512 + 512 * 8 + 8;
  EXPECT_EQ(RankingGr(config, features, {"action", 100}, 1).parameters().count(),
            8 * layer + 2 * mlp + 8192 * 1024 + head);
}

TEST(RankingGr, DrawsTheSameWhateverTheBatch) {
  const RankingGr model = make(small_ranking());
  const Samples whole = ranking_samples();
  const std::vector<double> together = ranking_logits(model, whole, Draws(5, 17));
  Samples last = whole;  // sample 2 alone
  last.count = 1;
  last.history_offsets = {0, 4};
  last.history_item.erase(last.history_item.begin(), last.history_item.begin() + 2);
  for (auto* events : {&last.event_action, &last.event_label})
    events->erase(events->begin(), events->begin() + 4);
  last.event_rankable.assign(5, 1);
  last.candidates = {5};
  last.candidate_item = {1};
  last.label = {0};
  last.user = {9};
  last.position = {300};
  last.context = {{1}, {1}};
  const std::vector<double> alone = ranking_logits(model, last, Draws(5, 17));
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(alone[i], together[4 * 3 + i], 1e-13);
}

}  // namespace
}  // namespace hstu
