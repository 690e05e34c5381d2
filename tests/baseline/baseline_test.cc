#include "hstu/baseline/baseline.h"

#include <cmath>

#include <gtest/gtest.h>

#include "batching/small_data.h"
#include "hstu/baseline/baseline_file.h"
#include "hstu/batching/anchors.h"
#include "hstu/metrics/auc.h"
#include "hstu/metrics/ranking.h"

namespace hstu {
namespace {

using small::Data;

double logit(double p) {
  return std::log(p / (1 - p));
}

// (score, probability) of one anchor, by counting the whole log again.
std::pair<double, double> expected_score(const Data& data, const Holdout& holdout, std::int64_t anchor) {
  double n = 0, positives = 0, item_n = 0, item_positives = 0, user_n = 0, user_positives = 0;
  for (const small::Event& e : data.events) {
    const bool trains = e.time < holdout.time_begin &&
                        !(holdout.users.train_fraction < 1 &&
                          user_split_hash(e.user, holdout.users.salt) >= holdout.users.train_fraction);
    if (!(e.action & kRankableBit) || !trains || e.time >= data.at(anchor).time) continue;
    const double positive = (e.action & small::kGood) ? 1 : 0;
    n += 1;
    positives += positive;
    if (e.item == data.at(anchor).item) item_n += 1, item_positives += positive;
    if (e.user == data.at(anchor).user) user_n += 1, user_positives += positive;
  }
  const double global = (positives + 1) / (n + 2);
  const double score = logit((item_positives + 10 * global) / (item_n + 10)) +
                       logit((user_positives + 10 * global) / (user_n + 10));
  return {score, 1 / (1 + std::exp(-(score - logit(global))))};
}

TEST(Baseline, EqualsCountingAnewForEveryAnchorAndHoldout) {
  DataOptions options;
  options.min_history = 2;
  options.window_seconds = 50;
  const std::vector<HoldoutOptions> holdouts{{.windows = 2},
                                             {.windows = 1, .first_window = 3},
                                             {.fraction = 0.2},
                                             {.train_user_fraction = 0.6, .split_salt = 5},
                                             {.seconds = 150, .train_user_fraction = 0.6, .split_salt = 5}};
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Data data = small::write(small::random_events(seed));
    const Dataset dataset(data.folder);
    for (const HoldoutOptions& holdout : holdouts) {
      const Anchors anchors = find_anchors(dataset, options, holdout);
      const auto positions = anchors.evaluation.first(anchors.evaluation.size());
      const BaselineScores scores = score_baseline(dataset, anchors.holdout, positions);
      ASSERT_EQ(scores.score.size(), positions.size());
      ASSERT_EQ(scores.probability.size(), positions.size());
      for (std::size_t i = 0; i < positions.size(); ++i) {
        const auto [score, probability] = expected_score(data, anchors.holdout, positions[i]);
        EXPECT_NEAR(scores.score[i], score, 1e-12);
        EXPECT_NEAR(scores.probability[i], probability, 1e-12);
      }
    }
  }
}

TEST(Baseline, TrainingAnchorsSeeOnlyWhatCameBeforeThem) {
  const Data data = small::write(small::random_events(6));
  const Dataset dataset(data.folder);
  const Anchors anchors = find_anchors(dataset, {}, {});
  const auto positions = anchors.training.first(anchors.training.size());
  const BaselineScores scores = score_baseline(dataset, anchors.holdout, positions);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    EXPECT_NEAR(scores.score[i], expected_score(data, anchors.holdout, positions[i]).first, 1e-12);
  }
}

TEST(Baseline, WithoutAnyTrainingEventEverythingIsEven) {
  const Data data = small::write({{.user = 1, .time = 5, .item = 1, .action = 0x81}});
  const Dataset dataset(data.folder);
  const BaselineScores scores = score_baseline(dataset, Holdout{}, std::vector<std::int64_t>{0});
  EXPECT_EQ(scores.score[0], 0);
  EXPECT_EQ(scores.probability[0], 0.5);
}

// Traps: the global rate at a sample's time is taken off, which reorders samples of different times; scores
// that differ in double are ties in single precision.
TEST(BaselineMetrics, RankByTheScoreInDouble) {
  bool distinguishes = false;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Data data = small::write(small::random_events(seed));
    const Dataset dataset(data.folder);
    DataOptions options;
    options.window_seconds = 50;
    const Anchors anchors = find_anchors(dataset, options, {.train_user_fraction = 0.6, .split_salt = 5});
    const auto positions = anchors.evaluation.first(anchors.evaluation.size());
    const BaselineScores scores = score_baseline(dataset, anchors.holdout, positions);
    std::vector<std::uint8_t> labels;
    std::vector<std::int64_t> users;
    for (const std::int64_t p : positions) {
      labels.push_back((data.at(p).action & small::kGood) != 0);
      users.push_back(data.at(p).user);
    }
    const Measures metrics = baseline_metrics(dataset, options, anchors.holdout, positions, {});
    EXPECT_EQ(metrics.find("auc"), auc(scores.score, labels));
    EXPECT_EQ(metrics.find("gauc"), grouped_auc(scores.score, labels, users).weighted);
    const std::vector<float> probabilities(scores.probability.begin(), scores.probability.end());
    EXPECT_EQ(metrics.find("log_loss"), ranking_metrics(probabilities, labels, users).log_loss);
    distinguishes |= metrics.find("auc") != auc(probabilities, labels);
  }
  EXPECT_TRUE(distinguishes);
}

}  // namespace
}  // namespace hstu
