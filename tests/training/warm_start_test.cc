#include "hstu/run/warm_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/base/npy.h"
#include "hstu/dataset/names_writer.h"
#include "hstu/embedding/saved_table.h"
#include "hstu/run/table_files.h"
#include "hstu/run/text_rows.h"
#include "support/kind_options.h"
#include "training/run_fixture.h"

namespace hstu {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::message_of;
using ::testing::Not;

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
    return warm_start({source_, map, states_}, Checkpoint(source_), experiment.learner().dense_optimizer,
                      experiment.learner().tables);
  }

  Path source_;
  bool states_ = true;
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
  EXPECT_THAT(to_text(report), HasSubstr("rows have "));
}

TEST_F(WarmStart, TakesTheStatesOfOptimizersOfItsKind) {
  Experiment source(options_);
  load_run(Checkpoint(source_), source);
  options_.seed = 9;
  Experiment experiment(options_);
  const WarmStartReport report = warm(experiment);
  Learner& mine = experiment.learner();
  EXPECT_EQ(report.row_states, report.rows);
  EXPECT_EQ(report.parameter_states, std::ssize(mine.model->parameters().all()));
  for (std::size_t t = 0; t < mine.tables.size(); ++t) {
    const auto rows = testing_embedding::rows_by_id(mine.tables[t]),
               theirs = testing_embedding::rows_by_id(source.learner().tables[t]);
    ASSERT_EQ(rows.size(), theirs.size());
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].state, theirs[i].state);
  }
  const DenseOptimizer &here = mine.dense_optimizer, &there = source.learner().dense_optimizer;
  EXPECT_EQ(here.steps(), 5);
  ASSERT_EQ(here.state().size(), there.state().size());
  for (std::size_t s = 0; s < here.state().size(); ++s) {
    const Tensor &mine_of = here.state()[s].tensor, &theirs_of = there.state()[s].tensor;
    EXPECT_TRUE(
        std::equal(mine_of.data<float>(), mine_of.data<float>() + mine_of.size(), theirs_of.data<float>()));
  }

  states_ = false;
  Experiment cold(options_);
  const WarmStartReport without = warm(cold);
  EXPECT_EQ(without.row_states, 0);
  EXPECT_EQ(without.parameter_states, 0);
  EXPECT_EQ(cold.learner().dense_optimizer.steps(), 0);
}

// Adam corrects its moments by the number of updates. With the number of the other run it would not correct
// those of new parameters, whose first steps would be several times the learning rate.
TEST_F(WarmStart, StatesOfNewParametersBeginNow) {
  options_.warm_start.checkpoint = source_;
  dlrmv4_of(options_).layers = 3;
  const auto expect_begun = [](Experiment& experiment, std::int64_t steps) {
    const DenseOptimizer& optimizer = experiment.learner().dense_optimizer;
    EXPECT_EQ(optimizer.steps(), steps);
    for (std::size_t p = 0; p < optimizer.parameters().size(); ++p) {
      const std::string& name = optimizer.parameters()[p]->name;
      EXPECT_EQ(optimizer.begun()[p], name.starts_with("layers.2.") ? 5 : 0) << name;
    }
  };
  Experiment experiment(options_);
  warm(experiment);
  expect_begun(experiment, 5);

  run("whole");
  interrupt_and_resume("parts", "step.end", 2);
  expect_same_run("whole", "parts");
  source_ = warm_start_checkpoint(folder_ / "parts");
  Experiment loaded(options_), next(options_);
  load_run(Checkpoint(source_), loaded);
  expect_begun(loaded, 10);
  warm(next);
  expect_begun(next, 10);
}

// The values of "worth" as codes of two texts.
Manifest write_texts(const Path& folder, const std::vector<std::string>& texts) {
  testing::SmallEvents events = testing::small_events(12, 0, 24);
  std::vector<std::int64_t> codes;
  for (const std::int64_t worth : events.table.context[0].integers()) {
    const std::string text = worth < 0 ? "phone" : "desktop";
    codes.push_back(std::find(texts.begin(), texts.end(), text) - texts.begin() + 1);
  }
  events.table.context[0] = IntegerColumn();
  events.table.context[0].append(codes);
  std::filesystem::create_directories(folder);
  DatasetWriter writer(folder, events.description);
  write_code_names(folder, "context_worth", texts, writer.manifest());
  writer.append(ordered(events.table));
  return writer.finish({});
}

TEST_F(WarmStart, MatchesRowsOfTextsByText) {
  options_.features.context.push_back({"worth", {"worth"}, 0, false});
  write_texts(folder_ / "first", {"phone", "desktop"});
  write_texts(folder_ / "next", {"watch", "desktop", "phone"});
  options_.data.path = folder_ / "first";
  run("texts");
  const Checkpoint checkpoint(warm_start_checkpoint(folder_ / "texts"));
  RunOptions now = options_;
  now.data.path = folder_ / "next";
  const Dataset next(now.data.path);
  const auto rows = match_text_rows(checkpoint, now, next);
  EXPECT_EQ(rows, (TextRows{{"worth", {0, 3, 2}}}));
  EXPECT_EQ(match_text_rows(checkpoint, options_, Dataset(options_.data.path)), TextRows{});

  now.warm_start.checkpoint = checkpoint.path();
  now.sparse.learning_rate = 0;
  options_ = now;
  run("warm");
  const SavedTable before(checkpoint.section("tables/worth")),
      after(Checkpoint(warm_start_checkpoint(folder_ / "warm")).section("tables/worth"));
  const auto row_of = [](const SavedTable& table, std::int64_t id) {
    const auto i = std::find(table.ids().begin(), table.ids().end(), id) - table.ids().begin();
    const auto row = table.row(static_cast<std::size_t>(i));
    return std::vector(row.begin(), row.end());
  };
  EXPECT_EQ(row_of(after, 3), row_of(before, 1)) << "phone";
  EXPECT_EQ(row_of(after, 2), row_of(before, 2)) << "desktop";

  options_.features.context.back() = {"worth", {"worth"}, 50, true};
  EXPECT_THAT(message_of<UsageError>([&] { match_text_rows(checkpoint, options_, next); }),
              AllOf(HasSubstr("table \"worth\""), HasSubstr("context_worth"), HasSubstr("--codes-from")));
  std::filesystem::remove_all(folder_ / "first");
  EXPECT_THAT(message_of<UsageError>([&] { match_text_rows(checkpoint, now, next); }),
              HasSubstr("gone or was replaced"));
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

class ImportedRows : public WarmStart {
 protected:
  // Begins with rows of these ids; the dataset has the items 0 to 11.
  WarmStartReport begin_with(const std::vector<std::int64_t>& ids) const {
    Experiment experiment(options_);
    const std::vector<std::int64_t> shape{std::ssize(ids), experiment.learner().tables[0].width()};
    const std::vector<float> values(static_cast<std::size_t>(shape[0] * shape[1]), 1);
    write_file(folder_ / "v.npy",
               npy_header(npy_type<float>(), shape) +
                   std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
    write_npy(folder_ / "i.npy", ids);
    std::filesystem::remove_all(folder_ / "rows");
    import_npy({{.table = "item", .rows = folder_ / "v.npy", .ids = folder_ / "i.npy"}}, folder_ / "rows");
    return warm_start({folder_ / "rows", {}, true}, Checkpoint(folder_ / "rows"),
                      experiment.learner().dense_optimizer, experiment.learner().tables, {},
                      known_ids(options_, experiment.dataset()));
  }
};

TEST_F(ImportedRows, AreCountedAgainstTheItemsOfTheDataset) {
  const WarmStartReport report = begin_with({0, 1, 2, 500});
  EXPECT_THAT(to_text(report),
              HasSubstr("table item: 4 rows, of which 3 are items of the dataset; 9 items have no row"));
  EXPECT_THAT(to_text(report), Not(HasSubstr("warning")));
  EXPECT_EQ(report.refusal, "");
  EXPECT_EQ(to_json(report).at("tables").at("item").at("with_row"), 3);
  EXPECT_THAT(to_text(begin_with({0, 700})),
              HasSubstr("warning: table item: fewer than a tenth of the items"));
}

TEST_F(ImportedRows, OfOtherIdsBeginNothing) {
  const WarmStartReport report = begin_with({500, 501});
  EXPECT_THAT(to_text(report), HasSubstr("warning: table item: fewer than a tenth of the items have a row"));
  EXPECT_THAT(report.refusal, HasSubstr("no row of "));
}

TEST_F(ImportedRows, OfAFrozenTableAreNeeded) {
  options_.tables.by_name["item"].frozen = true;
  EXPECT_THAT(to_text(begin_with({0, 1, 2, 3, 4, 5, 6})),
              HasSubstr("warning: table item is frozen: 5 items keep their initial values for ever"));
  EXPECT_EQ(begin_with({0}).refusal, "");
  EXPECT_THAT(begin_with({500}).refusal, HasSubstr("tables.item.frozen = true, and "));
  options_.tables.by_name["user"].frozen = true;
  EXPECT_THAT(begin_with({0}).refusal, HasSubstr("has nothing for table user"));
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
