// Whole runs over ranks on processors.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "hstu/comm/transport.h"
#include "hstu/run/warm_start.h"
#include "hstu/training/evaluation.h"
#include "support/kind_options.h"
#include "training/ranked_run.h"

namespace hstu::testing {
namespace {

TEST_F(RankedRun, EveryWorldSizeTrainsTheSameModel) {
  const TrainResult alone = run("alone");
  ASSERT_TRUE(alone.evaluation);
  const std::vector<Json> expected = log("alone", "train");
  for (const int ranks : {2, 3, 4, 7}) {
    const std::string name = std::to_string(ranks);
    const TrainResult result = run_on(ranks, name);
    EXPECT_EQ(result.steps, alone.steps);
    EXPECT_EQ(result.samples, alone.samples);
    EXPECT_NEAR(*result.evaluation->model.find("ne"), *alone.evaluation->model.find("ne"), 1e-5);
    EXPECT_EQ(result.evaluation->model.count("n"), alone.evaluation->model.count("n"));
    const std::vector<Json> lines = log(name, "train");
    ASSERT_EQ(lines.size(), expected.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      EXPECT_NEAR(lines[i].at("loss"), expected[i].at("loss").get<double>(), 1e-5);
      EXPECT_EQ(lines[i].at("table_rows"), expected[i].at("table_rows"));
      EXPECT_EQ(lines[i].at("bad_ids"), expected[i].at("bad_ids"));
      EXPECT_EQ(lines[i].at("window_n"), expected[i].at("window_n"));
    }
  }
}

// Rows that ranks share are counted once, and those of each rank.
TEST_F(RankedRun, AWarmStartReportsTheSameOfAnyRanks) {
  options_.training.max_steps = 2;
  run("source");
  options_.warm_start.checkpoint = warm_start_checkpoint(folder_ / "source");
  options_.tables.by_name["user"].ranks = "copy";
  run("alone");
  run_on(3, "three");
  EXPECT_EQ(log("three").front().at("warm_start"), log("alone").front().at("warm_start"));
}

// Gradients of a row are added in the order of ranks, wherever that is done.
TEST_F(RankedRun, EveryDivisionOfTablesGivesTheSameBytes) {
  options_.sparse.kind = RowOptimizerKind::adamw;
  options_.tables.by_name["item"].optimizer = "adagrad";
  run_on(3, "split");
  const auto expect_same = [&](const std::string& name) {
    run_on(3, name);
    expect_same_tensors(name, "split");
  };
  for (const auto& [word, form] : kTableRanks) {
    options_.tables.ranks = form;
    if (form != TableRanks::split) expect_same(std::string(word));
  }
  options_.tables.by_name["item"].ranks = "column";
  options_.tables.by_name["user"].ranks = "copy";
  expect_same("mix");
}

TEST_F(RankedRun, ResumesWithAnotherDivisionOfTables) {
  options_.sparse.kind = RowOptimizerKind::adam;
  const TrainResult whole = run_on(1, "whole");
  const std::int64_t steps = options_.training.max_steps;
  options_.training.max_steps = 0;
  bool resumes = false;
  int ranks = 4;
  for (const TableRanks form :
       {TableRanks::column, TableRanks::table, TableRanks::split, TableRanks::column}) {
    options_.training.max_steps += steps / 4;
    options_.tables.ranks = form;
    options_.tables.by_name["user"].ranks = resumes ? "copy" : "column";
    const TrainResult changed = run_on(ranks, "changed", resumes);
    if (options_.training.max_steps == steps) {
      EXPECT_EQ(changed.samples, whole.samples);
      EXPECT_NEAR(*changed.evaluation->model.find("ne"), *whole.evaluation->model.find("ne"), 1e-5);
    }
    resumes = true;
    ranks = ranks == 4 ? 3 : ranks - 1;
  }
}

// Rows are read before the step that changes them: with few rows, every step changes rows that the next one
// reads.
TEST_F(RankedRun, EveryPipelineGivesTheSameBytes) {
  options_.evaluation.every_data_fraction = 0.2;
  options_.sparse.kind = RowOptimizerKind::adam;
  options_.tables.by_name["user"].ranks = "column";
  expect_same_in_every_pipeline("whole");
  options_.training.micro_batch_tokens = 40;
  expect_same_in_every_pipeline("parts");
  options_.tables.by_name["item"] = {.capacity = "6", .evict = Evict::lfu, .admit_after = 3};
  expect_same_in_every_pipeline("limits");
}

TEST_F(RankedRun, APipelineThatHasNothingToExchangeIsNamedOnce) {
  options_.ranks.pipeline = Pipeline::prefetch;
  const auto words_on = [&](int ranks, const std::string& name) {
    ::testing::internal::CaptureStderr();
    run_on(ranks, name);
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string note = "note: ranks.pipeline = \"prefetch\" has nothing to exchange: ";
  EXPECT_NE(words_on(1, "alone").find(note + "there is one rank\n"), std::string::npos);
  EXPECT_EQ(words_on(2, "split").find(note), std::string::npos);
  options_.tables.ranks = TableRanks::copy;
  const std::string copies = words_on(2, "copies");
  EXPECT_NE(copies.find(note + "every rank has all rows"), std::string::npos);
  EXPECT_EQ(copies.find(note), copies.rfind(note));
}

TEST_F(RankedRun, ResumesWithAnotherPipeline) {
  run_on(3, "whole");
  options_.training.max_steps = 5;
  options_.ranks.pipeline = Pipeline::prefetch;
  run_on(3, "halves");
  options_.training.max_steps = 12;
  options_.ranks.pipeline = Pipeline::sparse;
  run_on(3, "halves", true);
  EXPECT_EQ(learner_tensors("halves"), learner_tensors("whole"));
}

TEST_F(RankedRun, TheDivisionOfBatchesDoesNotMatter) {
  const TrainResult alone = run("alone");
  for (const Balance balance : {Balance::nvidia, Balance::none}) {
    options_.training.balance = balance;
    const TrainResult result = run_on(3, std::string(word_of(kBalances, balance)));
    EXPECT_NEAR(*result.evaluation->model.find("ne"), *alone.evaluation->model.find("ne"), 1e-5);
    for (const Json& line : log(std::string(word_of(kBalances, balance)), "train")) {
      EXPECT_GT(line.at("work_max_over_mean_of_slices"), 1.0);
      const double before = line.at("work_max_over_mean_of_slices"), after = line.at("work_max_over_mean");
      EXPECT_TRUE(balance == Balance::none ? after == before : after <= before);
      for (const auto& [key, largest] :
           {std::pair{"work_of_ranks", after}, std::pair{"work_of_ranks_in_slices", before}}) {
        const auto work = line.at(key).get<std::vector<double>>();
        ASSERT_EQ(work.size(), 3u);
        EXPECT_NEAR(*std::max_element(work.begin(), work.end()), largest, 1e-4);
        EXPECT_NEAR(work[0] + work[1] + work[2], 3, 3e-4);
      }
      EXPECT_GT(line.at("division_ms"), 0);
      EXPECT_LE(line.at("division_exposed_ms"), line.at("division_ms"));
    }
  }
}

// The window ends inside a batch: which of its samples are in it was once decided by the order of ranks.
TEST_F(RankedRun, TheWindowOfMetricsDoesNotDependOnRanksOrBalance) {
  options_.metrics.window_samples = 10;  // of batches of 7
  options_.dense.learning_rate = options_.sparse.learning_rate = 0;
  options_.training.accumulate = 2;
  run("alone");
  const std::vector<Json> expected = log("alone", "train");
  const auto expect_same = [&](const std::string& name) {
    const std::vector<Json> lines = log(name, "train");
    ASSERT_EQ(lines.size(), expected.size());
    for (std::size_t i = 0; i < lines.size(); ++i)
      for (const char* key : {"window_auc", "window_ne", "window_accuracy", "window_gauc", "window_n"})
        if (expected[i].at(key).is_null())
          EXPECT_TRUE(lines[i].at(key).is_null()) << name << " line " << i << " " << key;
        else
          EXPECT_NEAR(lines[i].at(key), expected[i].at(key).get<double>(), 1e-6)
              << name << " line " << i << " " << key;
  };
  for (const auto& [word, balance] : kBalances) {
    options_.training.balance = balance;
    for (const int ranks : {2, 3}) {
      const std::string name = fmt::format("{} {}", word, ranks);
      run_on(ranks, name);
      expect_same(name);
    }
  }
}

TEST_F(RankedRun, PartsOfDifferentRanksNeedNotBeEqualInNumber) {
  const TrainResult alone = run("alone");
  options_.training.micro_batch_tokens = 40;
  const TrainResult parts = run_on(3, "parts");
  EXPECT_NEAR(*parts.evaluation->model.find("ne"), *alone.evaluation->model.find("ne"), 1e-5);
}

TEST_F(RankedRun, LongSamplesThatRanksShareAreTrainedAndEvaluatedAsByOneRank) {
  const TrainResult alone = run("alone");
  options_.ranks.context = 2, options_.ranks.context_above = 7;
  for (const int ranks : {2, 4}) {
    const TrainResult shared = run_on(ranks, fmt::format("shared{}", ranks));
    EXPECT_EQ(shared.samples, alone.samples);
    EXPECT_NEAR(*shared.evaluation->model.find("ne"), *alone.evaluation->model.find("ne"), 1e-5);
  }
  EXPECT_NEAR(log("shared2", "train").back().at("loss"),
              log("alone", "train").back().at("loss").get<double>(), 1e-5);
}

TEST_F(RankedRun, ContextGroupsThatCannotBeAreRefusedByName) {
  options_.ranks.context = 2;
  try {
    run_on(3, "refused");
    FAIL() << "three ranks in groups of two";
  } catch (const UsageError& error) {
    EXPECT_STREQ(
        error.what(),
        "ranks.context = 2 does not divide 3 ranks: start a multiple of 2, or set ranks.context = 1");
  }
}

TEST_F(RankedRun, AccumulatedBatchesTrainAsOneLargeBatch) {
  options_.training.batch_size = 12;
  const TrainResult large = run("large");
  options_.training.batch_size = 4;
  options_.training.accumulate = 3;
  for (const int ranks : {1, 3}) {
    const TrainResult found = run_on(ranks, fmt::format("accumulated{}", ranks));
    EXPECT_EQ(found.steps, large.steps);
    EXPECT_EQ(found.samples, large.samples);
    EXPECT_NEAR(*found.evaluation->model.find("ne"), *large.evaluation->model.find("ne"), 1e-5);
  }
}

TEST_F(RankedRun, ACheckpointOfSplitTablesHasEveryRow) {
  run("alone");
  run_on(4, "split");
  const auto alone = newest_checkpoint(folder_ / "alone"), split = newest_checkpoint(folder_ / "split");
  for (const auto& [name, bytes] : alone) {
    if (!name.starts_with("tables")) continue;
    EXPECT_EQ(split.at(name).size(), bytes.size()) << name;
  }
}

TEST_F(RankedRun, TheSameWorldSizeTwiceGivesTheSameBytes) {
  run_on(3, "a");
  run_on(3, "b");
  expect_same_run("a", "b");
}

TEST_F(RankedRun, ResumesAtTheSameWorldSizeToTheBit) {
  run_on(3, "whole");
  options_.training.max_steps = 5;
  run_on(3, "halves");
  options_.training.max_steps = 12;
  run_on(3, "halves", true);
  EXPECT_EQ(newest_checkpoint(folder_ / "halves").at("dense.safetensors"),
            newest_checkpoint(folder_ / "whole").at("dense.safetensors"));
}

class RankedRunOfShards : public RankedRun {
 protected:
  RankedRunOfShards() { dlrmv4_of(options_).positions = 8192; }  // a parameter of two blocks
};

TEST_F(RankedRunOfShards, HaveTheBitsOfWholeOptimizers) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    options_.ranks.shard_optimizer = false;
    run_on(ranks, fmt::format("whole{}", ranks));
    options_.ranks.shard_optimizer = true;
    run_on(ranks, fmt::format("shards{}", ranks));
    EXPECT_EQ(learner_tensors(fmt::format("shards{}", ranks)), learner_tensors(fmt::format("whole{}", ranks)))
        << ranks;
  }
}

TEST_F(RankedRunOfShards, ResumeWithAndWithoutShardsToTheBit) {
  run_on(3, "whole");
  for (const bool first : {false, true}) {
    const std::string name = first ? "first" : "then";
    options_.training.max_steps = 5;
    options_.ranks.shard_optimizer = first;
    run_on(3, name);
    options_.training.max_steps = 12;
    options_.ranks.shard_optimizer = !first;
    run_on(3, name, true);
    EXPECT_EQ(learner_tensors(name), learner_tensors("whole"));
  }
}

TEST_F(RankedRunOfShards, OfAnOptimizerWithoutStateAreSavedAndResumed) {
  options_.dense.config.kind = DenseOptimizerKind::sgd;
  const TrainResult whole = run_on(3, "whole");
  options_.ranks.shard_optimizer = true;
  options_.training.max_steps = 5;
  run_on(3, "shards");
  options_.training.max_steps = 12;
  run_on(3, "shards", true);
  EXPECT_EQ(learner_tensors("shards"), learner_tensors("whole"));
  options_.training.max_steps = 15;
  EXPECT_EQ(run_on(2, "shards", true).steps, 15);
}

TEST_F(RankedRunOfShards, ResumeAtAnotherWorldSize) {
  const TrainResult whole = run_on(1, "whole");
  options_.ranks.shard_optimizer = true;
  options_.training.max_steps = 5;
  run_on(4, "changed");
  options_.training.max_steps = 12;
  const TrainResult changed = run_on(2, "changed", true);
  EXPECT_EQ(changed.samples, whole.samples);
  EXPECT_NEAR(*changed.evaluation->model.find("ne"), *whole.evaluation->model.find("ne"), 1e-5);
}

TEST_F(RankedRun, ResumesAtAnotherWorldSize) {
  const TrainResult whole = run_on(1, "whole");
  options_.training.max_steps = 5;
  run_on(4, "changed");
  options_.training.max_steps = 12;
  const TrainResult changed = run_on(2, "changed", true);
  EXPECT_EQ(changed.samples, whole.samples);
  EXPECT_NEAR(*changed.evaluation->model.find("ne"), *whole.evaluation->model.find("ne"), 1e-5);
}

TEST_F(RankedRun, TheBaselineIsComputedByRank0Alone) {
  create_run_folder(folder_ / "run", options_);
  std::array<std::int64_t, 3> baseline{}, model{};
  run_ranks(3, [&](Communicator& comm) {
    Experiment experiment(options_, comm);
    const auto result = Evaluator(experiment).run(nullptr, comm);
    baseline[static_cast<std::size_t>(comm.rank())] = result->baseline.count("n");
    model[static_cast<std::size_t>(comm.rank())] = result->model.count("n");
  });
  EXPECT_GT(baseline[0], 0);
  EXPECT_EQ(baseline[1] + baseline[2], 0);
  EXPECT_EQ(model, (std::array{baseline[0], baseline[0], baseline[0]}));
}

TEST_F(RankedRun, ARankWithoutSamplesOfABatchDividesByNoLongestSample) {
  dlrmv4_of(options_).attention_scale = AttentionScale::longest_in_batch;
  options_.evaluation.max_samples = 2;
  const TrainResult alone = run("alone"), three = run_on(3, "three");
  EXPECT_EQ(three.evaluation->model.count("n"), alone.evaluation->model.count("n"));
}

// The rank that has the sample says which it is; the others say the same, and lose no rank.
TEST_F(RankedRun, AScoreOfAnEvaluationThatIsNotFiniteEndsAllRanksWithTheSameError) {
  std::array<std::string, 2> messages;
  run_ranks(2, [&](Communicator& comm) {
    Experiment experiment(options_, comm);
    const std::int64_t last = experiment.anchors().evaluation.first(7).back();
    const std::int64_t user = experiment.dataset().user_at(last);
    EmbeddingTable& table = experiment.learner().tables[1];
    ASSERT_EQ(table.config().name, "user");
    const std::vector<float> values(static_cast<std::size_t>(table.config().dim),
                                    std::numeric_limits<float>::infinity());
    const std::vector<float> state(static_cast<std::size_t>(table.state_width()), 0.0f);
    table.restore(std::array{user}, values.data(), state.data());
    messages[static_cast<std::size_t>(comm.rank())] =
        message_of<NotFiniteError>([&] { Evaluator(experiment).run(nullptr, comm); });
  });
  EXPECT_TRUE(messages[0].starts_with("the score of user ")) << messages[0];
  EXPECT_TRUE(messages[0].ends_with(" (rank 1)")) << messages[0];
  EXPECT_EQ(messages[0], messages[1]);
}

TEST_F(RankedRun, ADisagreementNamesTheRankAndTheFact) {
  create_run_folder(folder_ / "run", options_);
  std::string message;
  run_ranks(3, [&](Communicator& comm) {
    TrainRequest mine{.options = options_, .folder = open_run_folder(folder_ / "run"), .version = "test"};
    if (comm.rank() == 2) mine.options.seed = 99;
    if (comm.rank() > 0) {
      EXPECT_THROW(follow(mine, comm), EndedRank);
    } else {
      message = message_of<UsageError>([&] { train(mine, comm); });
    }
  });
  EXPECT_NE(message.find("rank 2 has another configuration than rank 0"), std::string::npos) << message;
}

}  // namespace
}  // namespace hstu::testing
