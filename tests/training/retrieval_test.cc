// Models that retrieve a user's next item, from a log without labels.
#include <cmath>

#include <gmock/gmock.h>

#include "training/retrieval_run.h"

namespace hstu::testing {
namespace {

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

TEST_F(RetrievalRun, SaysWhereTheLatestItemIsNoBaselineOfItsOwn) {
  write_walks(folder_ / "no item twice", 1);
  options_.data.path = folder_ / "no item twice";
  options_.training.epochs = 1;
  const EvaluationResult left_out = *run("left out").evaluation;
  EXPECT_FALSE(left_out.item_baselines.contains("last"));
  EXPECT_THAT(left_out.undefined.at("last"), ::testing::HasSubstr("the same as popularity"));
  retrieval_of(options_).exclude_seen = SeenItems::none;
  const EvaluationResult with_baselines = *run("counted").evaluation;
  EXPECT_TRUE(with_baselines.item_baselines.contains("last"));
  EXPECT_TRUE(with_baselines.undefined.empty());
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
      expect_same_losses(name, of + "1");
    }
  }
}

// The targets that negatives are drawn from are those of all ranks and parts.
TEST_F(RetrievalRun, NegativesOfTheBatchAreThoseOfAllRanks) {
  retrieval_of(options_).loss = {.kind = RetrievalLossKind::batch_uniform, .negatives = 8};
  options_.training.epochs = 8;
  run_on(1, "whole");
  const std::vector<double> expected = losses("whole");
  EXPECT_LT(expected.back(), 0.8 * expected.front());
  run_on(2, "ranks");
  options_.training.micro_batch_tokens = 60;
  run_on(1, "parts");
  for (const char* const name : {"ranks", "parts"}) expect_same_losses(name, "whole", 2e-5);
}

// The gradients of parts, of which each reads all items, are summed before the update.
TEST_F(RetrievalRun, PartsOfABatchMoveTheModelAsTheWholeDoes) {
  run("whole");
  options_.training.micro_batch_tokens = 60;
  run("parts");
  expect_same_losses("parts", "whole");
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

class RetrievalOfAttributes : public RetrievalRun {
 protected:
  RetrievalOfAttributes() { give_attributes(); }
};

// Rows of items stay as they begin, near 0: only the attribute can tell items apart.
TEST_F(RetrievalOfAttributes, AttributesAloneAreEnough) {
  options_.training.epochs = 20;
  options_.evaluation.every_data_fraction = 0;
  options_.features.attributes.pop_back();
  options_.tables.by_name.erase("given");
  options_.tables.by_name["item"].frozen = true;
  const TrainResult result = run("run");
  const std::vector<double> all = losses("run");
  EXPECT_LT(all.back(), all.front() / 2);
  EXPECT_GT(*result.evaluation->find("hr@10"), 0.7);
}

// Items of a catalogue that is divided, those that are drawn, and those of a batch.
TEST_F(RetrievalOfAttributes, RanksAndPartsTrainAsOneDoes) {
  options_.training.epochs = 2;
  const auto expect_same = [&](const std::string& name, const TrainResult& alone, const std::string& other,
                               const TrainResult& result) {
    expect_same_losses(other, name, 2e-5);
    EXPECT_NEAR(*result.evaluation->find("mrr"), *alone.evaluation->find("mrr"), 1e-3) << other;
  };
  for (const RetrievalLossKind kind :
       {RetrievalLossKind::full, RetrievalLossKind::uniform, RetrievalLossKind::mixed}) {
    retrieval_of(options_).loss = {.kind = kind, .negatives = 8};
    const std::string name(word_of(kRetrievalLosses, kind));
    const TrainResult alone = run_on(1, name);
    expect_same(name, alone, name + " split", run_on(2, name + " split"));
    if (kind != RetrievalLossKind::full) continue;
    options_.tables.ranks = TableRanks::copy;
    expect_same(name, alone, "copy", run_on(4, "copy"));
    options_.training.micro_batch_tokens = 60;
    expect_same(name, alone, "parts", run_on(1, "parts"));
    options_.training.micro_batch_tokens = 0;
    options_.tables.ranks = TableRanks::split;
  }
}

TEST_F(RetrievalOfAttributes, ResumesToTheSameBytes) {
  options_.training.epochs = 2;
  options_.tables.by_name["number"].updates = UpdatedRows::all;
  run("whole");
  interrupt_and_resume("parts", "step.end", 5);
  expect_same_run("whole", "parts");
}

// Kept rows of a frozen table: what is learnt is the way from them.
TEST_F(RetrievalOfAttributes, GivenVectorsStayAsTheyAre) {
  options_.training.epochs = 1;
  options_.tables.by_name["given"].frozen = true;
  run("run");
  Experiment trained(options_), untrained(options_);
  load_run(Checkpoint(find_checkpoint(open_run_folder(folder_ / "run").checkpoints(), -1)), trained);
  const auto values = [](Experiment& experiment, std::size_t use) {
    Learner& learner = experiment.learner();
    Tensor rows = Tensor::empty({kWalkItems, learner.tables[use].width()}, DType::f32);
    learner.catalogues[use]->read(0, rows);
    return std::vector<float>(rows.data<float>(), rows.data<float>() + rows.size());
  };
  EXPECT_EQ(values(trained, 2), values(untrained, 2));
  EXPECT_NE(values(trained, 1), values(untrained, 1));
}

class RetrievalOfContexts : public RetrievalRun {
 protected:
  RetrievalOfContexts() {
    options_.data.path = folder_ / "contexts";
    options_.features.context = {{"of_country", {"country"}, 0, false},
                                 {"user_and_country", {"user", "country"}, 64, true}};
    options_.training.epochs = 2;
  }
  // The log of walks, whose users have a country in all of their events; but user 7, if it moves.
  void write_countries(bool moves = false) const {
    const Dataset walks(folder_ / "walks");
    Manifest description = walks.manifest();
    description.context = {"country"};
    EventTable table;
    std::vector<std::int64_t> user, item, time, country;
    for (std::int64_t u = 0; u < walks.users(); ++u) {
      walks.events_of(u).each([&](std::int64_t p) {
        user.push_back(walks.user_ids()[static_cast<std::size_t>(u)]);
        item.push_back(walks.item()[p]);
        time.push_back(walks.time()[p]);
        table.action.push_back(walks.action()[static_cast<std::size_t>(p)]);
        country.push_back(moves && u == 7 && p == walks.events_of(u).latest() ? 3 : 1 + u % 2);
      });
    }
    table.user.append(user);
    table.item.append(item);
    table.time.append(time);
    table.context.emplace_back().append(country);
    std::filesystem::create_directories(folder_ / "contexts");
    write_dataset(folder_ / "contexts", description, table);
  }
};

TEST_F(RetrievalOfContexts, RanksAndPartsTrainAsOneDoes) {
  write_countries();
  run_on(1, "whole");
  run_on(2, "ranks");
  options_.training.micro_batch_tokens = 60;
  run_on(1, "parts");
  for (const char* const name : {"ranks", "parts"}) expect_losses_near(name, "whole", 1e-5);
  options_.training.micro_batch_tokens = 0;
  options_.features.context.clear();
  run_on(1, "without");
  EXPECT_NE(losses("without"), losses("whole"));
}

TEST_F(RetrievalOfContexts, ResumesToTheSameBytes) {
  write_countries();
  run("whole");
  interrupt_and_resume("parts", "step.end", 5);
  expect_same_run("whole", "parts");
}

// The context of an event behind the history would tell of the event.
TEST_F(RetrievalOfContexts, RefusesAUserWithTwoValues) {
  write_countries(true);
  EXPECT_THAT(
      message_of<UsageError>([&] { Experiment experiment(options_); }),
      ::testing::AllOf(::testing::HasSubstr("of_country"), ::testing::HasSubstr("column country of user 7"),
                       ::testing::HasSubstr("give all events of a user one value")));
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
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  EXPECT_THAT(message([](RunOptions& o) { o.data.options.min_history = 0; }), HasSubstr("data.min_history"));
  EXPECT_THAT(message([](RunOptions& o) { retrieval_of(o).heads = 3; }), HasSubstr("model.heads"));
  EXPECT_THAT(message([](RunOptions& o) { retrieval_of(o).positions = 5; }), HasSubstr("model.positions"));
  EXPECT_THAT(message([](RunOptions& o) { o.data.options.negatives.per_positive = 1; }),
              HasSubstr("data.negatives"));
  for (const char* const key : {"item", "hour", "weekday"})
    EXPECT_THAT(message([&](RunOptions& o) {
                  o.features.context = {{"of_event", {"user", key}, 100, true}};
                }),
                AllOf(HasSubstr("of_event"), HasSubstr(key), HasSubstr("take \"user\"")));
  EXPECT_THAT(message([](RunOptions& o) { o.checkpoint.best = "hr@20"; }), HasSubstr("ranking_k = [20]"));
  EXPECT_THAT(message([](RunOptions& o) { o.evaluation.holdout.last = 1; }), HasSubstr("last split"));
}

}  // namespace
}  // namespace hstu::testing
