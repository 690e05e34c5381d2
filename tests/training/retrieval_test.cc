// Models that retrieve a user's next item, from a log without labels.
#include <cmath>

#include <gmock/gmock.h>

#include "support/kind_options.h"
#include "training/ranked_run.h"

namespace hstu::testing {
namespace {

// Most events follow from the one before: 100 users, 41 items with ids of 40 bits.
void write_walks(const Path& folder) {
  constexpr std::int64_t kItems = 41;
  Manifest description;
  description.name = "walks";
  description.actions = {{"event", 1}};
  description.label = "event";
  description.pools = {"event"};
  EventTable table;
  std::vector<std::int64_t> user, item, time;
  RandomStream random{5};
  for (std::int64_t u = 0; u < 100; ++u) {
    auto at = static_cast<std::int64_t>(random.below(kItems));
    for (std::int64_t n = 0; n < 6 + u % 9; ++n) {
      user.push_back(u);
      item.push_back((at << 20) + 1);
      time.push_back(3600 * n + u);
      table.action.push_back(1 | kRankableBit);
      at = random.uniform() < 0.95 ? (5 * at + 3) % kItems : static_cast<std::int64_t>(random.below(kItems));
    }
  }
  table.user.append(user);
  table.item.append(item);
  table.time.append(time);
  std::filesystem::create_directories(folder);
  write_dataset(folder, description, table);
}

class RetrievalRun : public RankedRun {
 protected:
  RetrievalRun() {
    write_walks(folder_ / "walks");
    options_.data.path = folder_ / "walks";
    options_.data.options.window_seconds = 0;
    options_.data.options.anchor_stride = 0;
    options_.data.options.min_history = 1;
    options_.features.context.clear();
    RetrievalConfig& model = retrieval_of(options_);
    model.embedding_dim = 32;
    model.heads = 2;
    model.dropout = 0.1;
    options_.training = {.batch_size = 32, .epochs = 3};
    options_.dense = {.learning_rate = 3e-3, .max_gradient_norm = 0, .config = {.beta2 = 0.98}};
    options_.sparse = {
        .kind = RowOptimizerKind::adamw, .learning_rate = 3e-3, .beta2 = 0.98, .weight_decay = 0};
    TableSection& item = options_.tables.by_name["item"];
    item.initial = {.kind = InitialKind::truncated_normal, .deviation = 0.02};
    options_.evaluation = {};
    options_.evaluation.holdout.split = LastSplit::valid;
    options_.evaluation.every_data_fraction = 1;
    options_.checkpoint = {.every_steps = 3, .every_seconds = 0, .keep = 0, .best = "ndcg@10"};
    options_.metrics.every_steps = 1;
  }

  std::vector<double> losses(const std::string& name) const {
    std::vector<double> losses;
    for (const Json& line : log(name, "train")) losses.push_back(line.at("loss").get<double>());
    return losses;
  }
};

// Of the issue: where a public HSTU does not learn.
TEST_F(RetrievalRun, LearnsTheTinyCase) {
  options_.training.epochs = 50;
  options_.evaluation.every_data_fraction = 0;
  const TrainResult result = run("run");
  const std::vector<double> all = losses("run");
  // Random unit vectors of width E: products have the variance 1 / E, and logits that over 0.05^2.
  EXPECT_NEAR(all.front(), std::log(41.0) + 0.5 / (0.05 * 0.05 * 32), 1.2);
  EXPECT_LT(all.back(), all.front() / 2);
  EXPECT_GT(*result.evaluation->find("hr@10"), 0.8);
  EXPECT_EQ(result.evaluation->model.count("n"), 100);
}

TEST_F(RetrievalRun, EveryPresetLearns) {
  options_.training.epochs = 12;
  for (const auto& [word, preset] : kSequencePresets) {
    retrieval_of(options_).preset = preset;
    run(std::string(word));
    const std::vector<double> all = losses(std::string(word));
    EXPECT_LT(all.back(), 0.8 * all.front()) << word;
  }
}

TEST_F(RetrievalRun, ResumesToTheSameBytes) {
  options_.tables.by_name["item"].updates = UpdatedRows::all;
  run("whole");
  for (const int step : {2, 5}) {
    const std::string name = "parts" + std::to_string(step);
    interrupt_and_resume(name, "step.end", step);
    expect_same_run("whole", name);
  }
}

TEST_F(RetrievalRun, AnyNumberOfRanksTrainsTheSameModel) {
  for (const TableRanks form : {TableRanks::split, TableRanks::copy}) {
    options_.tables.ranks = form;
    const std::string of(word_of(kTableRanks, form));
    const TrainResult alone = run_on(1, of + "1");
    for (const int ranks : {2, 4}) {
      const std::string name = of + std::to_string(ranks);
      const TrainResult result = run_on(ranks, name);
      for (const char* const metric : {"ndcg@10", "mrr"})
        EXPECT_NEAR(*result.evaluation->find(metric), *alone.evaluation->find(metric), 1e-3) << name;
      EXPECT_EQ(result.evaluation->model.count("n"), 100) << name;
      const std::vector<double> expected = losses(of + "1"), found = losses(name);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << name << i;
    }
  }
}

// The gradients of parts, of which each reads all items, are summed before the update.
TEST_F(RetrievalRun, PartsOfABatchMoveTheModelAsTheWholeDoes) {
  run("whole");
  options_.training.micro_batch_tokens = 60;
  run("parts");
  const std::vector<double> expected = losses("whole"), found = losses("parts");
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
}

TEST_F(RetrievalRun, ScoresTheTestOfTheSameModel) {
  run("run");
  const auto evaluated = [&](bool test) {
    RunOptions options = options_;
    options.evaluation.holdout.scores_test = test;
    Experiment experiment(options);
    load_run(Checkpoint(find_checkpoint(open_run_folder(folder_ / "run").checkpoints(), -1)), experiment);
    const Dataset& dataset = experiment.dataset();
    for (const std::int64_t p : experiment.anchors().evaluation.first(1000))
      EXPECT_EQ(dataset.end_of_user_in_segment(p) - p, test ? 1 : 2);
    return *Evaluator(experiment).run();
  };
  EXPECT_EQ(*evaluated(false).find("mrr"), *log("run", "eval").back().at("mrr").get<std::optional<double>>());
  EXPECT_NE(*evaluated(true).find("mrr"), *evaluated(false).find("mrr"));
}

TEST_F(RetrievalRun, UpdatesRowsWithoutAGradientWhereAskedTo) {
  retrieval_of(options_).loss = {.kind = RetrievalLossKind::uniform, .negatives = 1};
  options_.training = {.batch_size = 1, .max_steps = 1};
  const auto rows_after = [&](UpdatedRows updates) {
    options_.tables.by_name["item"].updates = updates;
    const std::string name(word_of(kUpdatedRows, updates));
    run(name);
    Experiment experiment(options_);
    load_run(Checkpoint(find_checkpoint(open_run_folder(folder_ / name).checkpoints(), -1)), experiment);
    return experiment.learner().tables.rows_alive();
  };
  EXPECT_LT(rows_after(UpdatedRows::touched), 41);
  EXPECT_EQ(rows_after(UpdatedRows::all), 41);
}

TEST_F(RetrievalRun, RefusesWhatDoesNotFit) {
  const auto message = [&](auto&& change) {
    const RunOptions kept = options_;
    change(options_);
    std::string text = message_of<UsageError>([&] {
      check_consistency(options_);
      Experiment experiment(options_);
    });
    options_ = kept;
    return text;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(message([](RunOptions& o) { o.data.options.min_history = 0; }), HasSubstr("data.min_history"));
  EXPECT_THAT(message([](RunOptions& o) { retrieval_of(o).heads = 3; }), HasSubstr("model.heads"));
  EXPECT_THAT(message([](RunOptions& o) { retrieval_of(o).positions = 5; }), HasSubstr("model.positions"));
  EXPECT_THAT(message([](RunOptions& o) { o.data.options.negatives.per_positive = 1; }),
              HasSubstr("data.negatives"));
  EXPECT_THAT(message([](RunOptions& o) {
                o.features.context = {{"user", {"user"}, 0, false}};
              }),
              HasSubstr("features"));
  EXPECT_THAT(message([](RunOptions& o) { o.checkpoint.best = "hr@20"; }), HasSubstr("ranking_k = [20]"));
  EXPECT_THAT(message([](RunOptions& o) { o.evaluation.holdout.last = 1; }), HasSubstr("last split"));
}

}  // namespace
}  // namespace hstu::testing
