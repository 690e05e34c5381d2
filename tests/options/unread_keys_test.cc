// Keys that another choice alone reads: an error, not a setting without effect.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/options/options.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

std::string problem(const std::vector<std::string>& set, const std::string& more = "") {
  try {
    parse_config<RunOptions>("[data]\npath = \"x\"\n" + more, "a.toml", set);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(UnreadKeys, AreRefusedWithTheChoiceThatReadsThem) {
  const struct {
    std::vector<std::string> others;  // that decide
    std::string set, readers;
    std::vector<std::string> reading;  // with which it is read
  } kCases[] = {
      {{"model.kind=retrieval"}, "model.loss.negatives=10", "\"mixed\"", {"model.loss.kind=gbce"}},
      {{"model.kind=retrieval", "model.loss.kind=mixed"},
       "model.loss.calibration=0.5",
       "with kind = \"gbce\"",
       {"model.loss.kind=gbce"}},
      {{"model.kind=ranking_gr"}, "model.target_group=2", "with candidates > 0", {"model.candidates=4"}},
      {{"model.kind=semantic_ids", "model.block=hstu"},
       "model.hidden=64",
       "with block = \"softmax\"",
       {"model.block=softmax"}},
      {{"model.kind=retrieval"}, "features.actions=[\"a\"]", "by another model.kind", {"model.kind=dlrmv4"}},
      {{}, "dense_optimizer.momentum=0.9", "with kind = \"sgd\"", {"dense_optimizer.kind=sgd"}},
      {{"dense_optimizer.kind=sgd"}, "dense_optimizer.beta1=0.5", "\"adamw\"", {"dense_optimizer.kind=adam"}},
      {{}, "sparse_optimizer.beta1=0.5", "\"adamw\"", {"tables.item.optimizer=adam"}},
      {{"sparse_optimizer.kind=adam"},
       "sparse_optimizer.weight_decay=0.1",
       "with kind = \"adamw\"",
       {"sparse_optimizer.kind=adamw"}},
      {{}, "tables.item.initial.value=2", "with kind = \"constant\"", {"tables.item.initial.kind=constant"}},
      {{"tables.item.capacity=9"}, "tables.item.half_life=5", "\"lru+lfu\"", {"tables.item.evict=lru+lfu"}},
      {{}, "schedule.decay_steps=100", "with a decay", {"schedule.decay=linear"}},
      {{}, "schedule.warmup_start=0.1", "with warmup_steps > 0", {"schedule.warmup_steps=9"}},
      {{}, "evaluation.negatives_from=all", "with negatives > 0", {"evaluation.negatives=9"}},
      {{}, "evaluation.min_delta=0.1", "with patience > 0", {"evaluation.patience=2"}},
      {{}, "data.negatives.from=uniform", "with per_positive > 0", {"data.negatives.per_positive=2"}},
      {{}, "checkpoint.full_every=3", "with incremental = true", {"checkpoint.incremental=true"}},
  };
  for (const auto& one : kCases) {
    std::vector<std::string> set = one.others;
    set.push_back(one.set);
    const std::string key = one.set.substr(0, one.set.find('='));
    EXPECT_THAT(problem(set), HasSubstr(key + ": it has no effect here, because it is read ")) << one.set;
    EXPECT_THAT(problem(set), HasSubstr(one.readers)) << one.set;
    set.insert(set.end(), one.reading.begin(), one.reading.end());
    EXPECT_EQ(problem(set), "") << one.set;
  }
}

TEST(UnreadKeys, WithTheirDefaultsSayNothing) {
  EXPECT_EQ(problem({"dense_optimizer.momentum=0", "sparse_optimizer.beta1=0.9"}), "");
  RunOptions options;
  options.data.path = "x";
  const std::string text = to_toml(options);  // all keys
  EXPECT_EQ(to_toml(parse_config<RunOptions>(text, "resolved.toml")), text);
  // A run's config.toml begins another run, also where its keys have lost their effect.
  options.schedule.decay_steps = 9;
  options.dense.config.momentum = 0.9;
  const std::string resolved = to_toml(options);
  EXPECT_EQ(to_toml(parse_config<RunOptions>(resolved, "resolved.toml")), resolved);
}

// A run that an earlier version began has the value in its file.
TEST(UnreadKeys, OfARunsOwnFileAreTakenAndThoseOfSetRefused) {
  const std::string text = "[data]\npath = \"x\"\n[dense_optimizer]\nmomentum = 0.9\n";
  const auto read = [&](const std::vector<std::string>& set) {
    return parse_config<RunOptions>(text, "run/config.toml", set, UnreadKeys::taken);
  };
  EXPECT_EQ(read({}).dense.config.momentum, 0.9);
  EXPECT_THROW(read({"sparse_optimizer.beta1=0.5"}), UsageError);
}

// hstu train CONFIG --set schedule.decay=none: the file's decay_steps have lost their effect on purpose.
TEST(UnreadKeys, OfAFileAreANoteBesideWordsOfSet) {
  const std::string text = "[data]\npath = \"x\"\n[schedule]\ndecay = \"linear\"\ndecay_steps = 9\n";
  const std::vector<std::string> set{"schedule.decay=none"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(parse_config<RunOptions>(text, "c.toml", set).schedule.decay, Decay::none);
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      HasSubstr("note: schedule.decay_steps: it has no effect here, because it is read with a decay"));
  const std::vector<std::string> of_another_section{"training.epochs=2"};
  EXPECT_THROW(parse_config<RunOptions>("[data]\npath = \"x\"\n[schedule]\ndecay_steps = 9\n", "c.toml",
                                        of_another_section),
               UsageError);
}

}  // namespace
}  // namespace hstu
