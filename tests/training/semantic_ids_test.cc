// Models of semantic ids, from a log and codes to an evaluation.
#include <cmath>

#include <gmock/gmock.h>

#include "hstu/codes/codes_file.h"
#include "support/kind_options.h"
#include "training/ranked_run.h"
#include "training/walks.h"

namespace hstu::testing {
namespace {

using ::testing::HasSubstr;

// Two levels; the last two items share a tuple.
ItemCodes walk_codes() {
  ItemCodes codes{.sizes = {7, 7}, .items = {}, .codes = {}};
  for (std::int64_t i = 0; i < kWalkItems; ++i) {
    const auto at = static_cast<std::int32_t>(std::min(i, kWalkItems - 2));
    codes.items.push_back(walk_item(i));
    codes.codes.insert(codes.codes.end(), {at / 7, at % 7});
  }
  return codes;
}

class SemanticIdsRun : public RankedRun {
 protected:
  SemanticIdsRun() {
    write_walks(folder_ / "walks");
    std::filesystem::create_directories(folder_ / "codes");
    write_codes(folder_ / "codes", walk_codes(), "by hand");
    options_.data.path = folder_ / "walks";
    options_.data.options.window_seconds = 0;
    options_.data.options.anchor_stride = 0;
    options_.data.options.min_history = 1;
    options_.features.context.clear();
    SemanticIdsConfig& model = semantic_ids_of(options_);
    model.codes = folder_ / "codes";
    model.dim = 32, model.layers = 2, model.heads = 2, model.head_dim = 16;
    model.dropout = 0.1;
    model.beam = 10;
    options_.training = {.batch_size = 32, .epochs = 3};
    options_.dense = {.learning_rate = 3e-3, .max_gradient_norm = 0, .config = {}};
    options_.sparse = {.kind = RowOptimizerKind::adamw, .learning_rate = 3e-3, .weight_decay = 0};
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
  for (const char* name : {"2", "3"}) {
    const std::vector<double> expected = losses("1"), found = losses(name);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << name << i;
  }
}

TEST_F(SemanticIdsRun, PartsOfABatchMoveTheModelAsTheWholeDoes) {
  run("whole");
  options_.training.micro_batch_tokens = 60;
  run("parts");
  const std::vector<double> expected = losses("whole"), found = losses("parts");
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
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
  EXPECT_THAT(message([](SemanticIdsConfig&) {}), HasSubstr("model.first_item"));
}

}  // namespace
}  // namespace hstu::testing
