#include "hstu/run/best_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/metrics/ranking.h"
#include "hstu/run/bad_id_warning.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

EvaluationResult with_auc(std::optional<double> auc) {
  EvaluationResult result;
  result.model.add("auc", auc);
  return result;
}

TEST(BestEvaluation, IsTheFirstOfEqualOnes) {
  BestEvaluation best;
  best.metric = "auc";
  std::int64_t step = 0;
  for (const double auc : {0.5, 0.7, 0.6, 0.7}) best.add(with_auc(auc), kRankingMetrics, ++step, 0);
  EXPECT_EQ(best.step, 2);
  EXPECT_EQ(best.value, 0.7);
  EXPECT_EQ(best.stale, 2);
}

// Each is better than the one before, but the third alone by more than min_delta than the reference.
TEST(BestEvaluation, SmallImprovementsAddUpForPatience) {
  BestEvaluation best;
  best.metric = "auc";
  std::int64_t step = 0;
  std::vector<std::int64_t> stale;
  for (const double auc : {0.5, 0.508, 0.516, 0.517}) {
    best.add(with_auc(auc), kRankingMetrics, ++step, 0.01);
    stale.push_back(best.stale);
  }
  EXPECT_EQ(stale, (std::vector<std::int64_t>{0, 1, 0, 1}));
  EXPECT_EQ(best.step, 4) << "the best checkpoint has no min_delta";
}

TEST(BestEvaluation, LowerIsBetterForEntropies) {
  BestEvaluation best;
  best.metric = "log_loss";
  std::int64_t step = 0;
  for (const double log_loss : {0.6, 0.5}) {
    EvaluationResult result;
    result.model.add("log_loss", log_loss);
    best.add(result, kRankingMetrics, ++step, 0);
  }
  EXPECT_EQ(best.step, 2);
  EXPECT_EQ(best.stale, 0);
}

TEST(BestEvaluation, ATargetIsReachedFromTheSideOfTheMetric) {
  const MetricSpec auc{.name = "auc", .title = ""},
      error{.name = "auc", .title = "", .better = Better::smaller};
  EXPECT_TRUE(reaches(auc, with_auc(0.7), 0.7));
  EXPECT_FALSE(reaches(auc, with_auc(0.6), 0.7));
  EXPECT_TRUE(reaches(error, with_auc(0.6), 0.7));
  EXPECT_FALSE(reaches(auc, with_auc({}), 0));
}

TEST(BestEvaluation, AnUndefinedMetricChangesNothing) {
  BestEvaluation best;
  best.metric = "auc";
  best.add(with_auc({}), kRankingMetrics, 1, 0);
  EXPECT_EQ(best.step, -1);
  best.add(with_auc(0.5), kRankingMetrics, 2, 0);
  const BestEvaluation before = best;
  best.add(with_auc({}), kRankingMetrics, 3, 0);
  EXPECT_EQ(best, before);
  EXPECT_EQ(best_evaluation_from_json(to_json(best)), best);
  EXPECT_EQ(best_evaluation_from_json(to_json(BestEvaluation())), BestEvaluation());
}

TEST(BadIdWarning, NamesFeaturesCountsAndTheRemedy) {
  const std::vector<BadIds::Feature> features{
      {"item", 5'000, 1'234, 7'003, "the sample of user 17 at event 48"},
      {"artist", 10, 0, 0, ""},
      {"user", 8, 0, 0, ""}};
  EvaluationResult evaluation;
  evaluation.bad_ids["user"] = 3;
  const std::string text = bad_id_warning(features, &evaluation);
  EXPECT_THAT(text, HasSubstr("7003 in the sample of user 17 at event 48"));
  EXPECT_THAT(text, HasSubstr("1,234"));
  EXPECT_THAT(text, HasSubstr("user"));
  EXPECT_THAT(text, HasSubstr("features.item_rows"));
  EXPECT_THAT(text, Not(HasSubstr("artist ")));
  EXPECT_EQ(bad_id_warning({features[1]}, nullptr), "");
}

}  // namespace
}  // namespace hstu
