// Weights of events, from a dataset to the losses of the three kinds and to the metrics of an evaluation.
#include <cmath>

#include <gmock/gmock.h>

#include "hstu/base/npy.h"
#include "hstu/kinds/dlrmv4/dlrmv4_layout.h"
#include "hstu/kinds/ranking_gr/ranking_gr_layout.h"
#include "hstu/metrics/weighted.h"
#include "hstu/objective/retrieval_columns.h"
#include "support/kind_options.h"
#include "training/ranked_run.h"
#include "training/ranking_options.h"

namespace hstu::testing {
namespace {

class WeightedRun : public RankedRun {
 protected:
  WeightedRun() { write_small_dataset(folder_ / "weighted", 40, 30, true); }

  void use_weights() { options_.data.path = folder_ / "weighted"; }
  void use_retrieval() {
    options_.features.context.clear();
    RetrievalConfig& model = retrieval_of(options_);
    model.embedding_dim = 8;
    model.heads = 2;
    options_.data.options.window_seconds = 0;
    options_.data.options.min_history = 1;
  }
  const Batch& first_batch() {
    use_weights();
    loader_.reset();  // reads the experiment
    experiment_.emplace(options_);
    loader_ = training_loader(*experiment_, {}, one_rank());
    return loader_->next()->batch;
  }
  double loss(const std::string& name, int ranks = 1) {
    options_.metrics.every_steps = 1;
    options_.training.max_steps = 3;
    run_on(ranks, name);
    return log(name, "train").back().at("loss").get<double>();
  }

  std::optional<Experiment> experiment_;
  std::unique_ptr<Loader> loader_;
};

// Each example has the weight of its own event, by which the small dataset has that of the item.
TEST_F(WeightedRun, ABatchHasTheWeightsOfItsExamples) {
  {
    options_.data.options.negatives.per_positive = 2;
    const Batch& batch = first_batch();
    const auto weight = batch.values<float>(dlrmv4::kCandidateWeight);
    const auto offsets = batch.values<std::int64_t>(dlrmv4::kCandidateOffsets),
               position = batch.values<std::int64_t>(kPositionColumn);
    ASSERT_GT(std::ssize(weight), batch.samples);
    for (std::size_t b = 0; b < position.size(); ++b)
      for (std::int64_t c = offsets[b]; c < offsets[b + 1]; ++c)
        EXPECT_EQ(weight[static_cast<std::size_t>(c)],
                  small_weight(experiment_->dataset().item()[position[b]]));
    options_.data.options.negatives.per_positive = 0;
  }
  use_ranking(options_);
  {
    const Batch& batch = first_batch();
    const auto weight = batch.values<float>(ranking_gr::kExampleWeight);
    const auto token = batch.values<std::int32_t>(ranking_gr::kExample),
               row = batch.values<std::int32_t>(index_column("item"));
    const auto ids = batch.values<std::int64_t>(ids_column("item"));
    ASSERT_GT(std::ssize(weight), batch.samples);
    for (std::size_t r = 0; r < weight.size(); ++r)
      EXPECT_EQ(weight[r],
                small_weight(ids[static_cast<std::size_t>(row[static_cast<std::size_t>(token[r])])]));
  }
  use_retrieval();
  const Batch& batch = first_batch();
  const auto weight = batch.values<float>(retrieval::kTargetWeight);
  const auto target = batch.values<std::int64_t>(retrieval::kTarget);
  ASSERT_GT(std::ssize(weight), batch.samples);
  for (std::size_t r = 0; r < weight.size(); ++r) EXPECT_EQ(weight[r], small_weight(target[r]));
}

// The three kinds. A run that does not want the weights is that of a dataset without them.
TEST_F(WeightedRun, TheLossTakesThemUnlessItShouldNotOnAnyNumberOfRanks) {
  const auto expect_weighted = [&](const std::string& kind) {
    SCOPED_TRACE(kind);
    options_.data.path = folder_ / "dataset";
    const double plain = loss(kind + " plain");
    use_weights();
    const double weighted = loss(kind + " weighted");
    EXPECT_GT(std::abs(weighted - plain), 1e-3 * plain);
    for (const int ranks : {2, 3, 4})
      EXPECT_NEAR(loss(fmt::format("{} on {}", kind, ranks), ranks), weighted, 2e-6 * weighted);
    options_.training.weighted = false;
    EXPECT_EQ(loss(kind + " without"), plain);
    options_.training.weighted = true;
  };
  expect_weighted("dlrmv4");
  use_ranking(options_);
  expect_weighted("ranking_gr");
  use_retrieval();
  expect_weighted("retrieval");
}

TEST_F(WeightedRun, AnEvaluationTakesThemIfItIsAsked) {
  use_weights();
  options_.training.weighted = false;
  options_.evaluation.ranking_k = {3};
  Experiment plain(options_);
  Evaluator without(plain);
  const Json unweighted = to_json(*without.run(), kRankingMetrics);
  options_.evaluation.weighted = true;
  Experiment experiment(options_);
  Evaluator evaluator(experiment);
  const EvaluationResult result = *evaluator.run();
  evaluator.write_predictions(folder_ / "predictions");
  const auto column = [&]<typename T>(const char* file, T) {
    const NpyColumn<T> values(folder_ / "predictions" / file);
    return std::vector<T>(values.values().begin(), values.values().end());
  };
  const auto score = column("score.npy", float{}), weight = column("weight.npy", float{});
  const auto label = column("label.npy", std::uint8_t{});
  const std::vector<double> scores(score.begin(), score.end());
  EXPECT_EQ(result.find("auc"), weighted_auc(scores, label, weight));
  const Json weighted = to_json(result, kRankingMetrics);
  for (const char* metric : {"auc", "gauc", "log_loss", "mrr", "baseline_auc"})
    EXPECT_NE(weighted.at(metric), unweighted.at(metric)) << metric;
  for (const char* count : {"n", "n_pos"}) EXPECT_EQ(weighted.at(count), unweighted.at(count)) << count;
  options_.data.path = folder_ / "dataset";
  Experiment none(options_);
  EXPECT_THAT(message_of<UsageError>([&] { const Evaluator refused(none); }),
              ::testing::HasSubstr("has no weights: prepare it with weight in the schema"));
}

}  // namespace
}  // namespace hstu::testing
