#include "hstu/run/warm_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedding/support.h"
#include "support/kind_options.h"
#include "training/run_fixture.h"

namespace hstu {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::message_of;

class WarmStart : public testing::RunTest {
 protected:
  WarmStart() : RunTest(12, 24) {
    options_.training.max_steps = 5;
    run("source");
    source_ = warm_start_checkpoint(folder_ / "source");
  }
  Path write_map(const std::string& text) const {
    write_file(folder_ / "map.toml", text);
    return folder_ / "map.toml";
  }
  WarmStartReport warm(Experiment& experiment, const Path& map = {}) const {
    return warm_start({source_, map}, experiment.learner().model->parameters().all(),
                      experiment.learner().tables);
  }

  Path source_;
};

TEST_F(WarmStart, TakesParametersAndRowsUnderAnotherSeedAndOptimizer) {
  Experiment source(options_);
  load_run(Checkpoint(source_), source);
  options_.seed = 9;
  options_.sparse.kind = RowOptimizerKind::adam;
  Experiment experiment(options_);
  const WarmStartReport report = warm(experiment);
  EXPECT_THAT(report.misfitting, IsEmpty());
  EXPECT_THAT(report.initial, IsEmpty());
  EXPECT_THAT(report.unused, IsEmpty());
  EXPECT_EQ(report.step, 5);
  for (const Parameter* p : experiment.learner().model->parameters().all()) {
    const Parameter& other = source.learner().model->parameters().find(p->name);
    EXPECT_TRUE(std::equal(p->value.data<float>(), p->value.data<float>() + p->value.size(),
                           other.value.data<float>()))
        << p->name;
  }
  const TableSet& tables = experiment.learner().tables;
  EXPECT_EQ(tables.rows_alive(), report.rows);
  EXPECT_EQ(tables.rows_alive(), source.learner().tables.rows_alive());
  EXPECT_EQ(testing_embedding::rows_by_id(tables[0])[0].values[0],
            testing_embedding::rows_by_id(source.learner().tables[0])[0].values[0]);
  EXPECT_EQ(testing_embedding::rows_by_id(tables[0])[0].state[0], 0.0f) << "the optimizer's state is new";
}

TEST_F(WarmStart, SaysWhatDidNotFitAndWhatWasRenamed) {
  options_.features.item_rows = 6;                            // of 12: later rows are not taken
  options_.features.context = {{"who", {"user"}, 0, false}};  // was "user"
  dlrmv4_of(options_).head_hidden = 12;
  dlrmv4_of(options_).layers = 3;
  Experiment experiment(options_);
  const WarmStartReport report = warm(experiment, write_map("[tables]\nwho = \"user\"\n"));
  EXPECT_THAT(report.renamed, Contains("table who, from table user"));
  EXPECT_THAT(report.misfitting, Contains(HasSubstr("head.0.weight: (8, ")));
  EXPECT_THAT(report.initial, Contains(HasSubstr("layers.2.")));
  EXPECT_EQ(experiment.learner().tables[0].rows_alive(), 6);
  EXPECT_THAT(to_text(report),
              AllOf(HasSubstr("head.0.weight"), HasSubstr("layers.2."), HasSubstr("renamed")));
}

TEST_F(WarmStart, RefusesNamesThatAreNotThereAndACheckpointOfWhichNothingFits) {
  Experiment experiment(options_);
  const auto refusal = [&](const std::string& map) {
    return message_of<UsageError>([&] { warm(experiment, write_map(map)); });
  };
  EXPECT_THAT(refusal("[tables]\nwhom = \"user\"\n"), HasSubstr("this model has no table \"whom\""));
  EXPECT_THAT(refusal("[tables]\nuser = \"usr\"\n"), AllOf(HasSubstr("\"usr\""), HasSubstr("user")));
  EXPECT_THAT(refusal("[layers]\na = \"b\"\n"), HasSubstr("layers"));
  EXPECT_THAT(refusal("[tables]\nuser = 3\n"), HasSubstr("in quotes"));
  EXPECT_THAT(message_of<UsageError>([&] { warm_start_checkpoint(folder_ / "dataset/none"); }),
              HasSubstr("neither a run nor a checkpoint"));
}

// The configuration contains the warm start: a run interrupted before its first save starts from it again.
TEST_F(WarmStart, IsPartOfTheRunAndOfItsLog) {
  options_.warm_start.checkpoint = source_;
  run("whole");
  EXPECT_EQ(log("whole", "run")[0].at("warm_start").at("step"), 5);
  create_run_folder(folder_ / "parts", options_);
  resume("parts");
  expect_same_run("whole", "parts");
  options_.warm_start = {};
  run("cold");
  EXPECT_NE(testing::newest_checkpoint(folder_ / "whole"), testing::newest_checkpoint(folder_ / "cold"));
}

TEST_F(WarmStart, ATornCheckpointIsRefused) {
  std::filesystem::resize_file(source_ / "dense.safetensors", 100);
  Experiment experiment(options_);
  EXPECT_THAT(message_of([&] { warm(experiment); }), HasSubstr("dense.safetensors"));
}

}  // namespace
}  // namespace hstu
