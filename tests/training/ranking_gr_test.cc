// Whole runs of the second model: what it learns, and that parts, restarts and evaluations change nothing.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/batching/loader.h"
#include "hstu/kinds/ranking_gr/ranking_gr_layout.h"
#include "support/kind_options.h"
#include "training/ranking_options.h"
#include "training/run_fixture.h"
#include "training/step_on.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

class TrainingRankingGr : public testing::RunTest {
 protected:
  TrainingRankingGr() { testing::use_ranking(options_); }
};

TEST_F(TrainingRankingGr, ExceedsTheBaseline) {
  options_.data.options.window_seconds = 0;
  options_.training.batch_size = 8;
  options_.training.epochs = 25;
  const TrainResult result = run("run");
  EXPECT_GT(*result.evaluation->model.find("auc"), *result.evaluation->baseline.find("auc") + 0.02);
  EXPECT_GT(*result.evaluation->model.find("auc"), 0.75);
  EXPECT_TRUE(result.evaluation->tasks.empty());  // one task: the run's metrics
}

TEST_F(TrainingRankingGr, AnInterruptionChangesNoByte) {
  options_.checkpoint = {.every_steps = 2, .every_seconds = 0, .keep = 0};
  run("whole");
  run("again");
  expect_same_run("whole", "again");
  interrupt_and_resume("parts", "step.middle", 5);
  expect_same_run("whole", "parts");
}

TEST_F(TrainingRankingGr, EvaluatingACheckpointRepeatsTheEndOfTraining) {
  ranking_gr_of(options_).labels = {"positive", "negative"};
  const TrainResult result = run("run");
  ASSERT_EQ(result.evaluation->tasks.size(), 2u);
  EXPECT_EQ(result.evaluation->tasks.at("positive").find("auc"), result.evaluation->model.find("auc"));
  EXPECT_EQ(result.evaluation->tasks.at("negative").count("n_pos"),
            result.evaluation->model.count("n") - result.evaluation->model.count("n_pos"));
  const RunFolder folder = open_run_folder(folder_ / "run");
  Experiment experiment(read_run_options(folder));
  load_run(Checkpoint(find_checkpoint(folder.checkpoints(), -1)), experiment);
  EXPECT_EQ(to_json(*Evaluator(experiment).run(), result.metrics).dump(),
            to_json(*result.evaluation, result.metrics).dump());
  EXPECT_EQ(evaluation_state(evaluation_from_state(evaluation_state(*result.evaluation))),
            evaluation_state(*result.evaluation));
}

// Silent trap: an evaluation of a model that sees the answers.
TEST_F(TrainingRankingGr, MasksUnderWhichAnItemSeesItsOwnLabelAreRefused) {
  const auto refusal = [&](const auto& change) {
    RunOptions changed = options_;
    changed.features.context = {{.name = "user", .keys = {"user"}}};
    ranking_gr_of(changed).layers = 2;
    change(ranking_gr_of(changed));
    try {
      check_consistency(changed);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  using Config = RankingGrConfig;
  EXPECT_THAT(refusal([](Config& m) { m.contextual_mask = true; }), HasSubstr("sees its own label"));
  EXPECT_THAT(refusal([](Config& m) { m.causal = false; }), HasSubstr("model.causal = false"));
  EXPECT_THAT(refusal([](Config& m) { m.causal = false, m.candidates = 3, m.target_group = 2; }),
              HasSubstr("target_group = 2"));
  EXPECT_EQ(refusal([](Config&) {}), "");
  EXPECT_EQ(refusal([](Config& m) { m.contextual_mask = true, m.allow_seen_labels = true; }), "");
  EXPECT_EQ(refusal([](Config& m) { m.contextual_mask = true, m.candidates = 1; }), "");
  EXPECT_EQ(refusal([](Config& m) { m.contextual_mask = true, m.actions = false; }), "");
  EXPECT_EQ(refusal([](Config& m) { m.causal = false, m.candidates = 3; }), "");
}

// The loss of a global batch is divided once by all of its labels, which samples have unequally.
TEST_F(TrainingRankingGr, TwoMicroBatchesMoveTheModelAsOneBatchDoes) {
  options_.dense.config.kind = DenseOptimizerKind::sgd;
  options_.sparse.kind = RowOptimizerKind::sgd;
  for (const std::int64_t candidates : {0, 3}) {
    ranking_gr_of(options_).candidates = candidates;
    Experiment whole(options_), parts(options_);
    const auto all = whole.anchors().training.first(12);
    SampleScratch scratch = whole.samples().scratch();
    const std::int64_t labels = whole.samples().examples(all, scratch);
    EXPECT_GT(labels, 12);
    const std::span<const std::int64_t> positions(all);
    for (std::int64_t step = 0; step < 3; ++step) {
      const StepResult a = testing::step_on_parts(whole, {positions}, labels, step);
      const StepResult b =
          testing::step_on_parts(parts, {positions.first(5), positions.subspan(5)}, labels, step);
      EXPECT_NEAR(a.loss, b.loss, 1e-6);
      EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-5 * a.gradient_norm);
      EXPECT_EQ(testing::predictions_of(a).size(), labels);
      EXPECT_EQ(testing::predictions_of(b).size(), labels);
    }
    const auto expected = whole.learner().model->parameters().all();
    const auto found = parts.learner().model->parameters().all();
    for (std::size_t p = 0; p < expected.size(); ++p) {
      for (std::int64_t i = 0; i < expected[p]->value.size(); ++i) {
        const float x = expected[p]->value.data<float>()[i];
        ASSERT_NEAR(found[p]->value.data<float>()[i], x, 2e-6 * (1 + std::abs(x))) << expected[p]->name;
      }
    }
  }
}

// The loader counts the labels of the whole global batch for each of its parts.
TEST_F(TrainingRankingGr, MicroBatchesOfTheLoaderHaveTheGlobalNumberOfLabels) {
  options_.training.batch_size = 16;
  Experiment experiment(options_);
  Loader loader(experiment.samples(), experiment.learner().model->layout(), experiment.schedule({}),
                {.division = {.part_tokens = 60}});
  std::int64_t parts = 0, labels = 0;
  while (LoadedBatch* const loaded = loader.next()) {
    const Batch& batch = loaded->batch;
    ++parts;
    labels += batch.tensor(ranking_gr::kExample).size();
    EXPECT_LE(batch.tokens, 60);
    if (!loaded->last_part) continue;
    EXPECT_EQ(batch.supervised, labels);
    labels = 0;
  }
  EXPECT_GT(parts, 10);
}

// Each rank divides by the labels of all ranks before it computes, without a message.
TEST_F(TrainingRankingGr, RanksOfTheLoaderHaveTheGlobalNumberOfLabels) {
  Experiment experiment(options_);
  std::vector<std::int64_t> labels(1000, 0), supervised(1000, 0);
  for (int rank = 0; rank < 3; ++rank) {
    Loader loader(experiment.samples(), experiment.learner().model->layout(), experiment.schedule({}),
                  {.division = {.ranks = 3}, .rank = rank});
    for (std::size_t i = 0; LoadedBatch* const loaded = loader.next(); ++i) {
      labels.at(i) += loaded->batch.tensor(ranking_gr::kExample).size();
      EXPECT_TRUE(rank == 0 || supervised.at(i) == loaded->batch.supervised);
      supervised.at(i) = loaded->batch.supervised;
    }
  }
  EXPECT_EQ(labels, supervised);
  EXPECT_GT(labels[0], 0);
}

TEST_F(TrainingRankingGr, OneClassOutOfSeveralTrains) {
  ranking_gr_of(options_).head = RankingHead::multi_class;
  ranking_gr_of(options_).labels = {"negative", "positive"};
  ranking_gr_of(options_).positive_classes = {"positive"};
  options_.data.options.window_seconds = 0;
  options_.training.epochs = 30;
  const TrainResult result = run("run");
  EXPECT_GT(*result.evaluation->model.find("auc"), 0.7);
  EXPECT_FALSE(result.evaluation->baseline.find("auc"));  // it predicts the dataset's label
  // Of two classes one probability is the other's complement.
  EXPECT_NEAR(*result.evaluation->tasks.at("negative").find("auc"), *result.evaluation->model.find("auc"),
              1e-4);
}

TEST_F(TrainingRankingGr, NamesWhatDoesNotFit) {
  const auto error = [&](const std::function<void(RunOptions&)>& change) {
    RunOptions changed = options_;
    change(changed);
    return message_of<UsageError>([&] { check_consistency(changed), Experiment(changed); });
  };
  EXPECT_THAT(
      error([](RunOptions& o) { ranking_gr_of(o).preprocessor_mlp = false, ranking_gr_of(o).dim = 4; }),
      HasSubstr("model.preprocessor_mlp"));
  EXPECT_THAT(error([](RunOptions& o) { o.features.attributes = {{.name = "artist"}}; }),
              HasSubstr("artist"));
  EXPECT_THAT(error([](RunOptions& o) { ranking_gr_of(o).label_column = "l"; }),
              HasSubstr("model.labels is empty"));
  EXPECT_THAT(error([](RunOptions& o) { ranking_gr_of(o).head = RankingHead::multi_class; }),
              HasSubstr("positive_classes"));
  EXPECT_THAT(error([](RunOptions& o) { ranking_gr_of(o).labels = {"a", "a"}; }), HasSubstr("\"a\" twice"));
  EXPECT_THAT(message_of<Error>([&] {
                RunOptions changed = options_;
                ranking_gr_of(changed).labels = {"positve"};
                Experiment{changed};
              }),
              HasSubstr("positive"));
  EXPECT_THAT(message_of<UsageError>([] {
                parse_config<RunOptions>("[data]\npath = \"x\"\n[model]\nkind = \"rankinggr\"\n", "c.toml");
              }),
              HasSubstr("rankinggr"));
  EXPECT_THAT(message_of<UsageError>([] {
                parse_config<RunOptions>(
                    "[data]\npath = \"x\"\n[model]\nkind = \"ranking_gr\"\naction_dim = 8\n", "c.toml");
              }),
              HasSubstr("action_dim"));
}

}  // namespace
}  // namespace hstu
