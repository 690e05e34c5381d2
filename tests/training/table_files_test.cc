// Exports of table rows, whole and of changes, joined, and rows from NumPy.
#include "hstu/run/table_files.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include <gmock/gmock.h>

#include "hstu/base/npy.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/dataset/names.h"
#include "hstu/embedding/saved_table.h"
#include "hstu/run/warm_start.h"
#include "support/table_rows.h"
#include "training/run_fixture.h"

namespace hstu::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TableFiles : public RunTest {
 protected:
  TableFiles() {
    options_.training.batch_size = 7;
    options_.training.max_steps = 12;
    options_.checkpoint = {.every_steps = 2, .every_seconds = 0, .keep = 0};
    options_.tables.by_name["item"] = {.capacity = "6", .evict = Evict::lru};
  }

  Json export_of(const std::string& run, std::int64_t step, std::int64_t since, const std::string& name) {
    return export_tables({.run = folder_ / run,
                          .output = folder_ / name,
                          .checkpoint = std::to_string(step),
                          .since = since < 0 ? "" : std::to_string(since)});
  }
  Json join(const std::vector<std::string>& names, const std::string& output) {
    std::vector<Path> paths;
    paths.reserve(names.size());
    for (const std::string& name : names) paths.push_back(folder_ / name);
    return join_exports(paths, folder_ / output);
  }
  std::map<std::string, std::string> files_of(const std::string& name) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / name))
      if (entry.is_regular_file())
        files[entry.path().lexically_relative(folder_ / name)] = read_file(entry.path());
    return files;
  }
  void run_with_exports() {
    run("run");
    export_of("run", 2, -1, "full");
    export_of("run", 4, 2, "to4");
    export_of("run", 8, 4, "to8");
    export_of("run", 12, 8, "to12");
  }
};

TEST_F(TableFiles, AWholeExportAndItsChangesGiveTheTrainersRowsToTheBit) {
  run_with_exports();
  const Json changes = export_of("run", 8, 2, "changes");
  EXPECT_EQ(changes.at("since"), 2);
  std::int64_t gone = 0;
  for (const Json& table : changes.at("tables")) gone += table.at("gone").get<std::int64_t>();
  EXPECT_GT(gone, 0);

  join({"full", "to4", "to8", "to12"}, "joined");
  export_of("run", 12, -1, "last");
  EXPECT_EQ(files_of("joined"), files_of("last"));
  // Whatever the steps are cut into, and from what was joined before.
  join({"full", "changes"}, "some");
  join({"some", "to12"}, "rest");
  EXPECT_EQ(files_of("rest"), files_of("last"));

  const Checkpoint trained(folder_ / "run" / "checkpoints" / "step_00000012"), read(folder_ / "joined");
  for (const auto& table : trained.manifest().tables) {
    const std::string name = "tables/" + table.at("name").get<std::string>();
    const SavedTable theirs(trained.section(name)), ours(read.section(name));
    ASSERT_TRUE(std::ranges::equal(theirs.ids(), ours.ids()));
    for (std::size_t i = 0; i < ours.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(theirs.row(i), ours.row(i))) << name << " " << ours.ids()[i];
  }
}

// Another seed, so that ids without a row have other initial values, and rows of its own.
TEST_F(TableFiles, ExportsOfAWarmStartedRunFollowThoseOfTheRunBefore) {
  run_with_exports();
  const Path start = folder_ / "run" / "checkpoints" / "step_00000010";
  options_.warm_start.checkpoint = start;
  options_.seed = 2;
  run("next");
  export_of("next", 8, -1, "whole");
  export_tables({.run = folder_ / "next",
                 .output = folder_ / "since8",
                 .checkpoint = "8",
                 .since = folder_ / "run" / "checkpoints" / "step_00000008"});
  join({"full", "to4", "to8", "since8"}, "joined");
  EXPECT_EQ(files_of("joined"), files_of("whole"));
  EXPECT_THAT(message_of([&] { join({"full", "to4", "since8"}, "wrong"); }), HasSubstr("since8"));
  export_of("next", 12, 8, "next12");
  export_of("next", 12, -1, "whole12");
  join({"joined", "next12"}, "joined12");
  EXPECT_EQ(files_of("joined12"), files_of("whole12"));
}

TEST_F(TableFiles, ChangesSinceACheckpointWithOtherTablesAreRefusedByName) {
  run("run");
  options_.features.context.push_back({"hour", {"hour"}, 0, false});
  run("other");
  EXPECT_THAT(message_of<UsageError>([&] {
                export_tables({.run = folder_ / "other",
                               .output = folder_ / "none",
                               .since = folder_ / "run" / "checkpoints" / "step_00000012"});
              }),
              AllOf(HasSubstr("no rows for the table hour"), HasSubstr("without --since")));
}

TEST_F(TableFiles, RunsWithIncrementalCheckpointsGiveTheSameExports) {
  run_with_exports();
  options_.checkpoint.incremental = true;
  options_.checkpoint.full_every = 3;
  run("changes");
  export_of("changes", 8, 4, "other");
  const auto expected = files_of("to8"), found = files_of("other");
  for (const char* file : {"tables/item.safetensors", "tables/user.safetensors"})
    EXPECT_EQ(expected.at(file), found.at(file));
}

// A run that trains on may prune the checkpoint that an export reads.
TEST_F(TableFiles, OfARunThatReplacesItsCheckpointAreOfTheNewOne) {
  run("run");
  const auto checkpoint = [&](int step) {
    return folder_ / "run/checkpoints" / fmt::format("step_{:08}", step);
  };
  std::atomic<bool> ended = false;
  std::thread run_goes_on([&] {
    const Path partial = folder_ / "run/checkpoints/new.partial";
    for (int step = 12; step < 27; ++step) {  // fewer times than an export tries
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      fs::copy(checkpoint(step), partial, fs::copy_options::recursive);
      fs::rename(partial, checkpoint(step + 1));
      fs::remove_all(checkpoint(step));
    }
    ended = true;
  });
  std::vector<std::string> errors;
  for (int exports = 0; !ended; ++exports) {
    try {
      export_tables({.run = folder_ / "run", .output = folder_ / fmt::format("rows{}", exports)});
    } catch (const std::exception& error) {
      errors.emplace_back(error.what());
    }
  }
  run_goes_on.join();
  EXPECT_THAT(errors, ::testing::IsEmpty());
}

TEST_F(TableFiles, NamesTheExportThatIsMissingOrOutOfOrder) {
  run_with_exports();
  const auto refused = [&](const std::vector<std::string>& names) {
    return message_of([&] { join(names, "joined"); });
  };
  EXPECT_THAT(refused({"full", "to8"}), AllOf(HasSubstr("to8 has the changes since step 4"),
                                              HasSubstr("from step 2 to step 4 is missing")));
  EXPECT_THAT(refused({"full", "to8", "to4"}), HasSubstr("the order is wrong"));
  EXPECT_THAT(refused({"to4", "to8"}), HasSubstr("has only the changes since step 2"));
  EXPECT_THAT(refused({"full", "to4", "full"}), HasSubstr("has every row: name it first"));
  EXPECT_THAT(refused({"run/checkpoints/step_00000002"}), HasSubstr("is not an export"));
  EXPECT_THAT(message_of([&] { Checkpoint(folder_ / "to4"); }), HasSubstr("only what changed"))
      << "changes are not taken for all rows";
  options_.seed = 2;
  run("other");
  export_of("other", 4, 2, "stranger");
  EXPECT_THAT(refused({"full", "stranger"}), HasSubstr("another checkpoint of step 2"));
  fs::resize_file(folder_ / "to4" / "tables" / "item.safetensors", 50);
  EXPECT_THAT(refused({"full", "to4", "to8"}), AllOf(HasSubstr("to4"), HasSubstr("item.safetensors")));
  EXPECT_FALSE(fs::exists(folder_ / "joined"));
  EXPECT_THAT(message_of<UsageError>([&] { export_of("run", 4, 4, "none"); }), HasSubstr("a step before 4"));
  EXPECT_THAT(message_of<UsageError>([&] { export_of("run", 4, 3, "none"); }),
              HasSubstr("no checkpoint of step 3"));
}

class NpyTables : public TableFiles {
 protected:
  void write_rows(std::vector<float> values, const std::vector<std::int64_t>& ids) {
    const std::vector<std::int64_t> shape{static_cast<std::int64_t>(ids.size()), 8};
    std::string bytes = npy_header("<f4", shape);
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    write_file(folder_ / "rows.npy", bytes);
    write_npy(folder_ / "ids.npy", ids);
  }
  Json import_as(const std::string& name) {
    return import_npy({{"item", folder_ / "rows.npy", folder_ / "ids.npy"}}, folder_ / name);
  }
};

TEST_F(NpyTables, ARunBeginsWithRowsFromNumPy) {
  std::vector<float> values(3 * 8);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 16;
  write_rows(values, {5, 0, 2});
  EXPECT_EQ(import_as("vectors").at("tables")[0].at("rows"), 3);
  Experiment experiment(options_);
  TableSet& tables = experiment.learner().tables;
  const WarmStartReport report =
      warm_start({.checkpoint = folder_ / "vectors", .name_map = {}}, Checkpoint(folder_ / "vectors"),
                 experiment.learner().dense_optimizer, tables);
  EXPECT_THAT(report.matched, ElementsAre("table item"));
  EXPECT_EQ(report.rows, 3);
  for (const auto& [id, row] : std::map<std::int64_t, std::size_t>{{5, 0}, {0, 1}, {2, 2}}) {
    const std::int64_t wanted = id;
    EXPECT_TRUE(tables[0].contains(wanted));
    const std::vector<float> found =
        testing_embedding::rows_of(tables[0], tables[0].select(std::span(&wanted, 1), RowAccess::read));
    EXPECT_TRUE(
        std::equal(found.begin(), found.end(), values.begin() + static_cast<std::ptrdiff_t>(row * 8)));
  }
}

TEST_F(NpyTables, IdsMayBeTheNamesThatALogHas) {
  write_rows(std::vector<float>(3 * 8, 0.5f), {0, 1, 2});
  const auto import_names = [&](const std::string& names, const std::string& output) {
    write_file(folder_ / "names.txt", names);
    return import_npy({{"item", folder_ / "rows.npy", folder_ / "names.txt"}}, folder_ / output);
  };
  import_names("shoe\nhat \xc3\xa9t\xc3\xa9\r\n17\n", "named");
  const SavedTable table(Checkpoint(folder_ / "named").section("tables/item"));
  std::vector<std::int64_t> ids{id_of_text("shoe"), id_of_text("hat \xc3\xa9t\xc3\xa9"), id_of_text("17")};
  std::sort(ids.begin(), ids.end());
  EXPECT_TRUE(std::ranges::equal(table.ids(), ids));
  EXPECT_THAT(message_of([&] { import_names("shoe\n\nhat\n", "none"); }), HasSubstr("line 2 has no name"));
  EXPECT_THAT(message_of([&] { import_names("shoe\nhat\n", "none"); }), HasSubstr("has 2 ids"));
  EXPECT_THAT(message_of([&] { import_names("shoe\nhat\nshoe\n", "none"); }), HasSubstr("occurs twice"));
}

TEST_F(NpyTables, NamesIdsAndValuesThatCannotBeRows) {
  std::vector<float> values(3 * 8, 1.0f);
  const auto refused = [&](const std::vector<std::int64_t>& ids) {
    write_rows(values, ids);
    return message_of([&] { import_as("vectors"); });
  };
  EXPECT_THAT(refused({5, 0, 5}),
              AllOf(HasSubstr("ids.npy"), HasSubstr("id 5 occurs twice"), HasSubstr("row 2")));
  EXPECT_THAT(refused({5, -1, 3}), HasSubstr("id -1 of row 1 is negative"));
  write_rows(values, {1, 2, 3});
  write_npy(folder_ / "ids.npy", std::vector<std::int64_t>{1, 2});
  EXPECT_THAT(message_of([&] { import_as("vectors"); }), HasSubstr("3 rows"));
  write_npy(folder_ / "ids.npy", std::vector<float>{1, 2, 3});
  EXPECT_THAT(message_of([&] { import_as("vectors"); }), HasSubstr("expected elements of type <i8 or <i4"));
  values[9] = NAN;
  EXPECT_THAT(refused({1, 2, 3}), AllOf(HasSubstr("rows.npy"), HasSubstr("row 1 (id 2)")));
  EXPECT_FALSE(fs::exists(folder_ / "vectors"));
}

}  // namespace
}  // namespace hstu::testing
