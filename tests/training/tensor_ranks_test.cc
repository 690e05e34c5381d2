// Whole runs whose ranks share the heads of the layers (ranks.tensor).
#include "hstu/comm/transport.h"
#include "support/kind_options.h"
#include "training/ranked_run.h"
#include "training/ranking_options.h"
#include "training/retrieval_run.h"
#include "training/semantic_ids_run.h"

namespace hstu::testing {
namespace {

class TensorRanks : public RankedRun {
 protected:
  TensorRanks() {
    dlrmv4_of(options_).heads = 4;
    dlrmv4_of(options_).layer_dropout = 0.2;
  }

  TrainResult run_divided(int ranks, std::int64_t tensor, const std::string& name, bool resume = false) {
    options_.ranks.tensor = tensor;
    const TrainResult result = run_on(ranks, name, resume);
    options_.ranks.tensor = 1;
    return result;
  }

  void expect_same_model(const TrainResult& found, const TrainResult& expected, const std::string& name,
                         const std::string& expected_name) const {
    EXPECT_EQ(found.steps, expected.steps);
    EXPECT_EQ(found.samples, expected.samples);
    EXPECT_NEAR(*found.evaluation->model.find("ne"), *expected.evaluation->model.find("ne"), 1e-5);
    const std::vector<Json> lines = log(name, "train"), of_one = log(expected_name, "train");
    ASSERT_EQ(lines.size(), of_one.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      EXPECT_NEAR(lines[i].at("loss"), of_one[i].at("loss").get<double>(), 1e-5);
      EXPECT_EQ(lines[i].at("table_rows"), of_one[i].at("table_rows"));
    }
    EXPECT_EQ(log(name, "run").front().at("dense_parameters"),
              log(expected_name, "run").front().at("dense_parameters"));
  }

  // What a run refuses.
  std::string refusal(int ranks, std::int64_t tensor) {
    try {
      run_divided(ranks, tensor, fmt::format("refused {} {}", ranks, tensor));
    } catch (const UsageError& error) {
      options_.ranks.tensor = 1;
      return error.what();
    }
    return "";
  }
};

TEST_F(TensorRanks, TrainTheModelOfOneRank) {
  options_.training.micro_batch_tokens = 60;  // several parts, of which ranks have some without samples
  options_.evaluation.every_data_fraction = 0.4;
  const TrainResult alone = run("alone");
  for (const auto& [ranks, tensor] : {std::pair{2, 2}, {4, 4}, {6, 2}}) {
    const std::string name = fmt::format("{} ranks, tensor {}", ranks, tensor);
    SCOPED_TRACE(name);
    expect_same_model(run_divided(ranks, tensor, name), alone, name, "alone");
  }
  run_divided(4, 4, "again");
  expect_same_tensors("again", "4 ranks, tensor 4");
}

TEST_F(TensorRanks, TrainRankingGr) {
  use_ranking(options_);
  const TrainResult alone = run("alone");
  expect_same_model(run_divided(4, 2, "divided"), alone, "divided", "alone");
}

// 4 ranks in pairs, then 2 ranks with all heads each, then 2 ranks that share them.
TEST_F(TensorRanks, ResumeAtAnotherDivision) {
  const TrainResult whole = run("whole");
  TrainResult changed;
  std::int64_t steps = 0;
  for (const auto& [ranks, tensor, shards] :
       {std::tuple{4, 2, true}, {2, 1, false}, {2, 2, true}, {1, 1, false}, {4, 4, true}, {4, 2, false}}) {
    options_.ranks.shard_optimizer = shards;
    options_.training.max_steps = steps + 2;
    changed = run_divided(ranks, tensor, "changed", steps > 0);
    steps += 2;
  }
  EXPECT_EQ(changed.samples, whole.samples);
  EXPECT_NEAR(*changed.evaluation->model.find("ne"), *whole.evaluation->model.find("ne"), 1e-5);
}

TEST_F(TensorRanks, ResumeAtTheSameDivisionToTheBit) {
  run_divided(4, 2, "whole");
  options_.training.max_steps = 5;
  options_.ranks.shard_optimizer = true;  // and then without
  run_divided(4, 2, "halves");
  options_.training.max_steps = 12;
  options_.ranks.shard_optimizer = false;
  run_divided(4, 2, "halves", true);
  EXPECT_EQ(learner_tensors("halves"), learner_tensors("whole"));
}

TEST_F(TensorRanks, OneRankEvaluatesWhatTheyHaveTrained) {
  const TrainResult divided = run_divided(4, 2, "run");
  options_.ranks.tensor = 2;  // as in the run's own configuration
  Experiment experiment(options_);
  const auto newest = latest_checkpoint(open_run_folder(folder_ / "run").checkpoints());
  load_run(Checkpoint(newest->path), experiment);
  EXPECT_NEAR(*Evaluator(experiment).run(nullptr, one_rank())->model.find("ne"),
              *divided.evaluation->model.find("ne"), 1e-6);
}

TEST_F(TensorRanks, WhatCannotBeDividedIsRefusedByName) {
  EXPECT_EQ(refusal(3, 2),
            "ranks.tensor = 2, but 3 ranks cannot form groups of 2: start a multiple of 2 ranks (--ranks 2), "
            "or set ranks.tensor = 1");
  EXPECT_NE(refusal(1, 2).find("1 rank cannot form groups of 2"), std::string::npos);
  EXPECT_EQ(refusal(3, 3), "ranks.tensor = 3 does not divide model.heads = 4: set a divisor of 4, or 1");
}

class TensorRetrieval : public RetrievalRun {};

TEST_F(TensorRetrieval, TrainsTheModelOfOneRank) {
  options_.training.max_steps = 4;
  options_.training.epochs = 1;
  run("alone");
  options_.ranks.tensor = 2;
  run_on(4, "divided");
  expect_losses_near("divided", "alone", 1e-5, 4);
}

TEST_F(TensorRetrieval, IsRefusedWithoutLayersThatHaveHeads) {
  retrieval_of(options_).preset = SequencePreset::sasrec;
  options_.ranks.tensor = 2;
  try {
    run_on(2, "refused");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "ranks.tensor = 2, but model.kind = \"retrieval\": it has no HSTU layers, whose heads ranks "
                 "could share: set ranks.tensor = 1");
  }
}

class TensorSemanticIds : public SemanticIdsRun {};

TEST_F(TensorSemanticIds, IsRefusedByName) {
  options_.ranks.tensor = 2;
  try {
    run_on(2, "refused");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("model.kind = \"semantic_ids\": its search keeps the keys"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace hstu::testing
