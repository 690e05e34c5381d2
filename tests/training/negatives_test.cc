// Whole runs on a log that has only positives, with negatives that are drawn.
#include <memory>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/npy.h"
#include "hstu/embedding/table_section.h"
#include "hstu/step/outputs.h"
#include "training/ranked_run.h"
#include "training/ranking_options.h"
#include "training/step_on.h"

namespace hstu::testing {
namespace {

using ::testing::HasSubstr;

// Users go through the items in one order, each from a place of its own, and skip some; all events are
// positives.
void write_positives(const Path& folder, std::int64_t users = 60, std::int64_t events_per_user = 20) {
  Manifest description;
  description.name = "positives";
  description.actions = {{"click", 1}};
  description.label = "click";
  description.pools = {"click"};
  EventTable table;
  std::vector<std::int64_t> user, item, time, kind;
  RandomStream random{.key = 5, .index = 0};
  for (std::int64_t u = 0; u < users; ++u) {
    std::int64_t at = static_cast<std::int64_t>(random.below(40));
    for (std::int64_t n = 0; n < events_per_user; ++n) {
      at = (at + (random.uniform() < 0.85 ? 1 : 2)) % 40;
      user.push_back(u);
      item.push_back(at);
      time.push_back(1000 * n + u);
      table.action.push_back(1 | kRankableBit);
    }
  }
  table.user.append(user);
  table.item.append(item);
  table.time.append(time);
  for (std::int64_t i = 0; i < 40; ++i) kind.push_back(i % 4);
  std::filesystem::create_directories(folder);
  write_dataset(folder, description, table, {item_attribute("kind", kind)});
}

class DrawnNegatives : public RankedRun {
 protected:
  DrawnNegatives() {
    write_positives(folder_ / "positives");
    options_.data.path = folder_ / "positives";
    options_.features.context.clear();
    options_.data.options.negatives = {
        .per_positive = 3, .from = NegativeSource::uniform, .exclude_seen = true};
    options_.evaluation.negatives = {
        .per_positive = 9, .from = NegativeSource::popularity, .exclude_seen = true};
    options_.evaluation.ranking_k = {1};
    options_.training.max_steps = 10;
  }
  void take_item_contexts() { options_.features.context = {{"user_x_item", {"user", "item"}, 512, true}}; }
};

TEST_F(DrawnNegatives, TeachToRankAbovePopularity) {
  options_.data.options.window_seconds = 0;
  options_.training.max_steps = 0;
  options_.training.epochs = 12;
  const TrainResult result = run("run");
  const EvaluationResult& found = *result.evaluation;
  EXPECT_EQ(found.model.count("n"), 10 * found.model.count("n_pos"));
  EXPECT_GT(*found.find("auc"), 0.8);
  EXPECT_GT(*found.find("hit@1"), 0.5);
  EXPECT_EQ(found.find("hit@1"), found.find("recall@1")) << "a list has one positive";
  EXPECT_LT(*found.item_baselines.at("popularity").find("hit@1"), 0.4);
  EXPECT_GT(*found.item_baselines.at("co_occurrence").find("hit@1"), 0.6);
  EXPECT_EQ(found.baseline.find("auc"), found.item_baselines.at("popularity").find("auc"));
  const Json line = log("run", "eval").back();
  EXPECT_EQ(line.at("item_baselines").at("popularity").at("hit@1"),
            *found.item_baselines.at("popularity").find("hit@1"));
  EXPECT_TRUE(line.at("baseline_ne").is_null());
  EXPECT_EQ(line.at("undefined").at("baseline_ne"), "popularity orders items and has no probabilities");
  EXPECT_EQ(evaluation_state(evaluation_from_state(evaluation_state(found))), evaluation_state(found));
}

// Trap: a rank's or a resumed run's own negatives; losses divided by the number of samples.
TEST_F(DrawnNegatives, ChangeNoResultWithRanksPartsAndResumes) {
  for (const bool shared : {true, false}) {
    if (!shared) take_item_contexts();
    const std::string kind = shared ? "shared" : "apart";
    options_.training.micro_batch_tokens = 0;
    const TrainResult alone = run(kind);
    EXPECT_EQ(alone.samples, 70) << "anchors, without their negatives";
    const std::vector<Json> expected = log(kind, "train");
    const auto expect_same = [&](const std::string& name, const TrainResult& result) {
      EXPECT_EQ(result.samples, alone.samples) << name;
      EXPECT_NEAR(*result.evaluation->model.find("ne"), *alone.evaluation->model.find("ne"), 1e-5) << name;
      EXPECT_EQ(result.evaluation->model.count("n"), alone.evaluation->model.count("n")) << name;
      const std::vector<Json> lines = log(name, "train");
      ASSERT_EQ(lines.size(), expected.size());
      for (std::size_t i = 0; i < lines.size(); ++i) {
        EXPECT_NEAR(lines[i].at("loss"), expected[i].at("loss").get<double>(), 1e-5) << name;
        EXPECT_EQ(lines[i].at("table_rows"), expected[i].at("table_rows")) << name;
      }
    };
    for (const int ranks : {2, 4})
      expect_same(kind + std::to_string(ranks), run_on(ranks, kind + std::to_string(ranks)));
    options_.training.micro_batch_tokens = 40;
    expect_same(kind + " parts", run(kind + " parts"));
    options_.training.micro_batch_tokens = 0;
    interrupt_and_resume(kind + " resumed", "step.middle", 4);
    EXPECT_EQ(newest_checkpoint(folder_ / (kind + " resumed")), newest_checkpoint(folder_ / kind));
  }
}

TEST_F(DrawnNegatives, OfEvaluationsDoNotDependOnBatches) {
  options_.dense.learning_rate = options_.sparse.learning_rate = 0;
  options_.training.max_steps = 1;
  const auto metrics = [&](const std::string& name) {
    return to_json(*run(name).evaluation, options_.model.metrics());
  };
  options_.evaluation.batch_size = 7;
  Json small = metrics("small");
  options_.evaluation.batch_size = 64;
  EXPECT_EQ(metrics("large").at("hit@1"), small.at("hit@1"));
  options_.seed = 2;
  EXPECT_NE(metrics("other seed").at("item_baselines"), small.at("item_baselines"));
}

// Full ranking: each held-out positive among all 40 items that its user has not had, on any number of ranks.
TEST_F(DrawnNegatives, MayBeTheWholeCatalogue) {
  options_.evaluation.negatives = {.per_positive = 39, .from = NegativeSource::all, .exclude_seen = true};
  options_.evaluation.ranking_k = {1, 5};
  options_.dense.learning_rate = options_.sparse.learning_rate = 0;  // the same scores to the bit
  options_.training.max_steps = 1;
  const auto result = [&](int ranks, const std::string& name) {
    return *(ranks == 1 ? run(name) : run_on(ranks, name)).evaluation;
  };
  const EvaluationResult alone = result(1, "one");
  // Positions of the hold-out, and of each the items of the events before it.
  const Experiment experiment(options_);
  const Dataset& dataset = experiment.dataset();
  std::int64_t examples = 0;
  for (const std::int64_t position :
       experiment.anchors().evaluation.first(experiment.anchors().evaluation.size())) {
    std::set<std::int64_t> seen{dataset.item()[position]};
    const UserEvents before = dataset.events_before(dataset.user_at(position), position);
    for (std::size_t r = 0; r < before.ranges(); ++r)
      for (std::int64_t p = before.range(r).begin; p < before.range(r).end; ++p)
        seen.insert(dataset.item()[p]);
    examples += 1 + 40 - static_cast<std::int64_t>(seen.size());
  }
  EXPECT_EQ(alone.model.count("n"), examples);
  EXPECT_TRUE(alone.find("mrr") && alone.find("ndcg@5") && alone.find("hit@1"));
  EXPECT_TRUE(alone.item_baselines.at("co_occurrence").find("hit@5"));
  for (const int ranks : {2, 4}) {
    const EvaluationResult shared = result(ranks, std::to_string(ranks));
    EXPECT_EQ(shared.model.count("n"), examples);
    for (const char* const metric : {"mrr", "ndcg@5", "hit@1"})
      EXPECT_NEAR(*shared.find(metric), *alone.find(metric), 1e-9) << metric;
    EXPECT_EQ(shared.item_baselines.at("popularity").find("mrr"),
              alone.item_baselines.at("popularity").find("mrr"));
  }
  options_.data.options.negatives.exclude_seen = false;
  EXPECT_EQ(result(1, "seen too").model.count("n"), 40 * alone.model.count("n_pos"));
  options_.evaluation.negatives.per_positive = 38;
  EXPECT_THAT([&] { run("too large"); },
              ::testing::ThrowsMessage<UsageError>(HasSubstr("the dataset has 39 other items")));
}

// Candidates that share a history are what samples of their own are, forwards and backwards.
class SharedHistories : public DrawnNegatives {
 protected:
  std::unique_ptr<Experiment> experiment(bool share) const {
    auto data = std::make_unique<TaskData>(options_);
    DataOptions changed = data->task.data;
    changed.negatives_share_history = share;
    std::destroy_at(&data->samples);
    std::construct_at(&data->samples, data->dataset, changed, data->items);
    return std::make_unique<Experiment>(options_, std::move(data));
  }
  void expect_same() {
    options_.dense.config.kind = DenseOptimizerKind::sgd;
    options_.sparse.kind = RowOptimizerKind::sgd;
    const auto shared = experiment(true), apart = experiment(false);
    const std::vector<std::int64_t> positions = shared->anchors().training.first(12);
    for (std::int64_t step = 0; step < 3; ++step) {
      const StepResult a = step_on_parts(*shared, {positions}, 48, step);
      const StepResult b = step_on_parts(*apart, {positions}, 48, step);
      EXPECT_NEAR(a.loss, b.loss, 1e-6);
      EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-5 * a.gradient_norm);
      EXPECT_GT(a.gradient_norm, 0);
      EXPECT_EQ(a.samples, b.samples);
      EXPECT_LT(a.tokens, b.tokens);
      const RankingSamples &x = predictions_of(a), &y = predictions_of(b);
      ASSERT_EQ(x.size(), 48);
      ASSERT_EQ(y.size(), 48);
      for (std::size_t i = 0; i < 48; ++i) {
        EXPECT_NEAR(x.probabilities()[i], y.probabilities()[i], 1e-6);
        EXPECT_EQ(x.labels()[i], i % 4 == 0 ? 1 : 0);
        EXPECT_EQ(y.labels()[i], x.labels()[i]);
      }
    }
  }
};

TEST_F(SharedHistories, ComputeTheSameModel) {
  Dlrmv4Config& model = dlrmv4_of(options_);
  model.input_dropout = model.layer_dropout = 0;
  options_.features.attributes = {{.name = "kind"}};
  expect_same();
}

TEST_F(SharedHistories, ComputeTheSameRankingModel) {
  use_ranking(options_);
  ranking_gr_of(options_).dropout = 0;
  ranking_gr_of(options_).candidates = 1;
  options_.data.options.anchor_stride = 1;
  expect_same();
}

TEST_F(DrawnNegatives, OfRankingGrBelongToOneEventOfSeveralLabels) {
  use_ranking(options_);
  EXPECT_THAT(message_of<UsageError>([&] { check_consistency(options_); }), HasSubstr("candidates = 1"));
  ranking_gr_of(options_).candidates = 1;
  EXPECT_GT(*run("one event").evaluation->find("auc"), 0);
  options_.data.options.negatives.per_positive = 0;
  ranking_gr_of(options_).candidates = 0;
  const EvaluationResult found = *run("evaluated").evaluation;
  EXPECT_EQ(found.model.count("n"), 10 * found.model.count("n_pos"));
  ranking_gr_of(options_).head = RankingHead::multi_class;
  EXPECT_THAT(message_of<UsageError>([&] { check_consistency(options_); }),
              HasSubstr("evaluation.negatives needs labels that a negative does not have"));
}

// Trap: null without a reason, for users who do not know what a metric needs.
TEST_F(DrawnNegatives, AreProposedWhereMetricsNeedThem) {
  options_.evaluation.negatives.per_positive = 0;
  options_.training.max_steps = 1;
  const TrainResult result = run("run");
  EXPECT_FALSE(result.evaluation->find("auc"));
  EXPECT_FALSE(result.evaluation->find("ndcg@1"));
  const Json undefined = log("run", "eval").back().at("undefined");
  for (const char* const metric : {"auc", "ne", "gauc", "lists"})
    EXPECT_THAT(undefined.at(metric).get<std::string>(),
                HasSubstr("all 240 samples are positive: evaluation.negatives = 100"));
}

// Each user's last sample, ranked among negatives that are popular before it.
TEST_F(DrawnNegatives, RankTheLastSampleOfEachUser) {
  options_.evaluation.holdout = {.last = 1};
  options_.training.max_steps = 1;
  const EvaluationResult found = *run("run").evaluation;
  EXPECT_EQ(found.model.count("n_pos"), 60);
  EXPECT_EQ(found.model.count("n"), 600);
  EXPECT_GT(*found.item_baselines.at("co_occurrence").find("hit@1"), 0.6);
}

TEST_F(DrawnNegatives, AreInThePredictionsOfAnEvaluation) {
  options_.training.max_steps = 1;
  Experiment experiment(options_);
  Evaluator evaluator(experiment);
  ASSERT_TRUE(evaluator.run());
  evaluator.write_predictions(folder_ / "scores");
  const auto count = [&](const char* file) {
    return NpyColumn<std::int64_t>(folder_ / "scores" / file).values().size();
  };
  EXPECT_EQ(static_cast<std::int64_t>(count("item.npy")), evaluator.tally().examples());
  EXPECT_EQ(count("position.npy"), count("item.npy"));
}

}  // namespace
}  // namespace hstu::testing
