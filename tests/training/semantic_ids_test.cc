// Models of semantic ids, from a log and codes to an evaluation.
#include <cmath>

#include <gmock/gmock.h>

#include "support/recompute_choices.h"
#include "training/semantic_ids_run.h"

namespace hstu::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(SemanticIdsRun, LearnsWithBothBlocksAndBothTargets) {
  options_.evaluation.every_data_fraction = 0;
  for (const auto& [block, targets] : {std::pair{CodeBlocks::softmax, CodeTargets::every_item},
                                       std::pair{CodeBlocks::hstu, CodeTargets::candidate}}) {
    semantic_ids_of(options_).block = block, semantic_ids_of(options_).targets = targets;
    options_.data.options.anchor_stride = targets == CodeTargets::candidate ? 1 : 0;
    options_.training.epochs = targets == CodeTargets::candidate ? 4 : 20;
    const std::string name = word_of(kCodeBlocks, block);
    const TrainResult result = run(name);
    const std::vector<double> all = losses(name);
    EXPECT_NEAR(all.front(), std::log(7.0), 0.7) << name;
    EXPECT_LT(all.back(), 0.75 * all.front()) << name;
    EXPECT_GT(*result.evaluation->find("hr@10"), 0.6) << name;
    EXPECT_GE(*result.evaluation->parts.at("tuple").find("hr@1"), *result.evaluation->find("hr@1")) << name;
    EXPECT_TRUE(result.evaluation->item_baselines.contains("markov"));
  }
}

TEST_F(SemanticIdsRun, ResumesToTheSameBytes) {
  run("whole");
  interrupt_and_resume("parts", "step.end", 5);
  expect_same_run("whole", "parts");
}

// of three ranks two have no user to evaluate.
TEST_F(SemanticIdsRun, AnyNumberOfRanksTrainsTheSameModel) {
  const TrainResult alone = run_on(1, "1");
  options_.evaluation.max_samples = 1;
  const TrainResult result = run_on(3, "3");
  EXPECT_EQ(result.evaluation->model.count("n"), 1);
  options_.evaluation.max_samples = 0;
  const TrainResult two = run_on(2, "2");
  EXPECT_EQ(two.evaluation->model.count("n"), 100);
  EXPECT_NEAR(*two.evaluation->find("mrr"), *alone.evaluation->find("mrr"), 1e-3);
  for (const char* name : {"2", "3"}) expect_same_losses(name, "1");
}

TEST_F(SemanticIdsRun, PartsOfABatchMoveTheModelAsTheWholeDoes) {
  run("whole");
  options_.training.micro_batch_tokens = 60;
  run("parts");
  expect_same_losses("parts", "whole");
}

TEST_F(SemanticIdsRun, WhatTheBackwardPassComputesOnceMoreChangesNoByte) {
  SemanticIdsConfig& model = semantic_ids_of(options_);
  options_.training.max_steps = 3;
  options_.evaluation.every_data_fraction = 0;
  for (const CodeBlocks block : {CodeBlocks::softmax, CodeBlocks::hstu}) {
    model.block = block, model.recompute = {};
    const std::string kept = word_of(kCodeBlocks, block);
    run(kept);
    for (const Recompute& choice : {Recompute{.norm = true, .gate = true}, Recompute{.layer = true}}) {
      model.recompute = choice;
      const std::string name = kept + to_string(choice);
      run(name);
      expect_same_tensors(name, kept);
    }
  }
}

TEST_F(SemanticIdsRun, RefusesWhatDoesNotFit) {
  const auto message = [&](auto&& change) {
    const RunOptions kept = options_;
    change(semantic_ids_of(options_));
    std::string text = message_of<UsageError>([&] {
      check_consistency(options_);
      Experiment experiment(options_);
    });
    options_ = kept;
    return text;
  };
  EXPECT_THAT(message([](SemanticIdsConfig& c) { c.codes.clear(); }), HasSubstr("model.codes"));
  EXPECT_THAT(message([](SemanticIdsConfig& c) { c.codes_id = "1234"; }), HasSubstr("restore the codes"));
  EXPECT_THAT(message([](SemanticIdsConfig& c) {
                c.positions = CodePositions::rotary;
                c.head_dim = 3;
              }),
              HasSubstr("model.positions"));
  ItemCodes few = walk_codes();
  few.items.pop_back(), few.codes.resize(few.codes.size() - 2);
  write_codes(folder_ / "codes", few, "by hand");
  EXPECT_THAT(message([](SemanticIdsConfig&) {}), ::testing::IsEmpty()) << "one item has no codes";
}

// An item without codes, whatever its id, is a count: in histories, and as a target.
TEST_F(SemanticIdsRun, AnItemWithoutCodesIsCountedAndTheOthersGoOn) {
  for (const std::int64_t missing : {std::int64_t{3}, kWalkItems - 1}) {
    ItemCodes few = walk_codes();
    few.items.erase(few.items.begin() + missing);
    few.codes.erase(few.codes.begin() + 2 * missing, few.codes.begin() + 2 * missing + 2);
    write_codes(folder_ / "codes", few, "by hand");
    const std::string name = std::to_string(missing);
    const EvaluationResult result = *run(name).evaluation;
    EXPECT_EQ(result.model.count("n"), 100) << name;
    EXPECT_GT(result.bad_ids.at("code"), 0) << name;
    EXPECT_GT(result.unanswered.at("new_item"), 0) << name;
    resume(name);
  }
}

TEST_F(SemanticIdsRun, NoItemWithCodesIsAnError) {
  ItemCodes others = walk_codes();
  for (std::int64_t& item : others.items) item += 1'000'000;
  write_codes(folder_ / "codes", others, "by hand");
  EXPECT_THAT(message_of<UsageError>([&] { run("run"); }), HasSubstr("model.first_item"));
}

// Appended codes keep those that the run has learnt; all others are refused.
TEST_F(SemanticIdsRun, GoesOnWithCodesThatExtendItsOwn) {
  ItemCodes few = walk_codes(), last{.sizes = few.sizes, .items = {few.items.back()}, .codes = {5, 5}};
  few.items.pop_back(), few.codes.resize(few.codes.size() - 2);
  write_codes(folder_ / "codes", few, "by hand");
  options_.model.options().settle();
  EXPECT_EQ(semantic_ids_of(options_).codes_id, codes_checksum(few));
  run("run");
  append_codes(folder_ / "codes", last, "by hand");
  options_.training.epochs = 4;
  const EvaluationResult result = *resume("run", -1, {"training.epochs"}).evaluation;
  EXPECT_FALSE(result.bad_ids.contains("code"));
  EXPECT_TRUE(result.unanswered.empty());
  few.codes.front() ^= 1;
  std::filesystem::remove_all(folder_ / "codes/appended_0001");
  write_codes(folder_ / "codes", few, "by hand");
  EXPECT_THAT(message_of<UsageError>([&] { resume("run"); }), HasSubstr("restore the codes"));
}

}  // namespace
}  // namespace hstu::testing
