#include "hstu/metrics/metric_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/metrics/ranking.h"

namespace hstu {
namespace {

TEST(MetricSpec, IsFoundByTheNameThatAnEvaluationGivesItsValue) {
  for (const char* name : {"auc", "gauc", "ne", "mrr", "ndcg@1", "recall@250"})
    EXPECT_NE(find_metric(kRankingMetrics, name), nullptr) << name;
  for (const char* name : {"", "acu", "ndcg", "ndcg@", "ndcg@0", "ndcg@-1", "ndcg@x", "mrr@10"})
    EXPECT_EQ(find_metric(kRankingMetrics, name), nullptr) << name;
  EXPECT_TRUE(find_metric(kRankingMetrics, "log_loss")->improves(0.4, 0.5));
  EXPECT_EQ(cutoff_of("recall@250"), 250);
  EXPECT_EQ(cutoff_of("auc"), std::nullopt);
}

TEST(MetricSpec, AnUnknownNameIsRefusedWithTheNearestOne) {
  EXPECT_EQ(known_metric(kRankingMetrics, "ndcg@5").title, "NDCG");
  EXPECT_THROW(known_metric(kRankingMetrics, "calibration"), UsageError) << "has no best value";
  try {
    known_metric(kRankingMetrics, "acu");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("\"auc\""));
  }
}

}  // namespace
}  // namespace hstu
