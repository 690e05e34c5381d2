// Metrics of ranked targets: their parts, and both lists.
#include "hstu/objective/retrieval_measures.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/metrics/rank_metrics.h"

namespace hstu {
namespace {

using Ids = std::vector<std::int64_t>;

TEST(RetrievalMeasures, AreOfAllTargetsAndOfPartsByTieAndFrequency) {
  const auto at = [](std::int64_t place) { return TargetRank{{.first = place}, {.first = place}}; };
  const RankedTargets targets{.user = {1, 2, 3},
                              .position = {10, 20, 30},
                              .target = {5, 6, 7},
                              .rank = {at(1), at(300), at(40)},
                              .tied = {1, 0, 0},
                              .repeated = {0, 0, 0}};
  const Ids items{5, 6, 7}, counts{8, 1, 0}, cutoffs{300};
  EvaluationResult result;
  measure_retrieval(targets, SeenItems::history,
                    {.lists = {}, .cutoffs = cutoffs, .items = items, .item_counts = counts}, result);
  EXPECT_EQ(result.find("hr@300"), 1.0);
  EXPECT_DOUBLE_EQ(*result.find("hr@10"), 1.0 / 3);
  EXPECT_EQ(result.parts.at("tied").find("hr@1"), 1.0);
  EXPECT_EQ(result.parts.at("not_tied").find("hr@50"), 0.5);
  EXPECT_EQ(result.parts.at("head").count("n"), 1);
  EXPECT_EQ(result.parts.count("torso"), 0U);
  EXPECT_EQ(result.parts.at("tail").count("n"), 2);
  EXPECT_EQ(result.parts.at("new").count("n"), 3);
  EXPECT_EQ(result.parts.count("repeated"), 0U);

  const Json json = to_json(result, kRetrievalMetrics);
  EXPECT_EQ(json.begin().key(), "ndcg@10");  // the headline
  EXPECT_EQ(json.at("parts").at("tied").at("n"), 1);
  EXPECT_EQ(evaluation_from_state(evaluation_state(result)).parts, result.parts);
}

// A target that the user has had is in the list with seen items, and in no list without them.
TEST(RetrievalMeasures, ARepeatedTargetIsNotFoundWhereSeenItemsAreLeftOut) {
  const RankedTargets targets{.user = {1, 2},
                              .position = {10, 20},
                              .target = {5, 6},
                              .rank = {{{.first = 1}, {.first = 3}}, {{.first = 2}, {.first = 8}}},
                              .tied = {0, 0},
                              .repeated = {1, 0}};
  const auto measured = [&](SeenItems left_out) {
    EvaluationResult result;
    measure_retrieval(targets, left_out, {}, result);
    EXPECT_EQ(result.parts.at("repeated").count("n"), 1);
    EXPECT_EQ(result.parts.at("new").count("n"), 1);
    EXPECT_EQ(result.parts.at("with_seen").find("hr@5"), 0.5);
    EXPECT_EQ(result.parts.at("with_seen").find("hr@10"), 1.0);
    EXPECT_EQ(result.parts.at("without_seen").find("hr@10"), 0.5);
    EXPECT_EQ(result.parts.at("without_seen").find("mrr"), 0.25);
    return result;
  };
  const EvaluationResult without = measured(SeenItems::history), with = measured(SeenItems::none);
  EXPECT_EQ(without.model, without.parts.at("without_seen"));
  EXPECT_EQ(without.parts.at("repeated").find("hr@200"), 0.0);
  EXPECT_EQ(with.model, with.parts.at("with_seen"));
  EXPECT_EQ(with.parts.at("repeated").find("hr@5"), 1.0);
  EXPECT_TRUE(with.unanswered.empty()) << "the model has answered";
}

}  // namespace
}  // namespace hstu
