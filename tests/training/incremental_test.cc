// Runs whose checkpoints have only the rows that changed since a whole one.
#include <set>

#include <gmock/gmock.h>

#include "hstu/embedding/saved_table.h"
#include "training/ranked_run.h"

namespace hstu::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 12 steps and a checkpoint after every second one: whole at steps 2 and 8 with full_every = 3.
class IncrementalRun : public RankedRun {
 protected:
  IncrementalRun() {
    options_.metrics.every_steps = 3;
    options_.checkpoint = {.every_steps = 2, .every_seconds = 0, .keep = 0};
    options_.checkpoint.full_every = 3;
    options_.tables.by_name["item"] = {.capacity = "6", .evict = Evict::lfu, .admit_after = 3};
    options_.features.context.push_back({"hour", {"hour"}, 0, false});  // a table without limits
  }

  Path checkpoints(const std::string& run) const { return folder_ / run / "checkpoints"; }
  Path checkpoint(const std::string& run, std::int64_t step) const {
    return checkpoints(run) / checkpoint_name(step);
  }
  // Everything that the tables of a checkpoint hold, bit by bit.
  std::string tables_of(const std::string& run, std::int64_t step) const {
    const Checkpoint checkpoint(this->checkpoint(run, step));
    std::string text;
    for (const auto& table : checkpoint.manifest().tables) {
      const SavedTable saved(checkpoint.section("tables/" + table.at("name").get<std::string>()));
      auto description = table;
      description.erase("increment");
      text += description.dump() + "\n";
      const auto add = [&](const auto values) {
        text.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
      };
      add(saved.ids());
      for (std::size_t i = 0; i < saved.size(); ++i) {
        add(saved.row(i));
        add(saved.state(i));
        if (table.contains("limits")) add(saved.history(i));
      }
      if (!table.contains("limits")) continue;
      add(saved.waiting_ids());
      add(saved.waiting_counts());
    }
    return text;
  }
  // The steps of the checkpoints with changes only, and that of the checkpoint that each continues.
  std::map<std::int64_t, std::int64_t> bases(const std::string& run) const {
    std::map<std::int64_t, std::int64_t> steps;
    for (const CheckpointEntry& entry : list_checkpoints(checkpoints(run)))
      if (const auto base = read_checkpoint_manifest(entry.path).base) steps[entry.step] = base->step;
    return steps;
  }
};

TEST_F(IncrementalRun, HoldsTheRowsOfWholeCheckpointsOnAnyNumberOfRanks) {
  run("whole");
  ASSERT_TRUE(bases("whole").empty());
  options_.checkpoint.incremental = true;
  run("changes");
  const std::map<std::int64_t, std::int64_t> expected{{4, 2}, {6, 2}, {10, 8}, {12, 8}};
  EXPECT_EQ(bases("changes"), expected);
  std::set<std::string> seen;
  for (const std::int64_t step : {2, 4, 6, 8, 10, 12}) {
    EXPECT_EQ(tables_of("changes", step), tables_of("whole", step)) << step;
    seen.insert(tables_of("changes", step));
  }
  EXPECT_EQ(seen.size(), 6u) << "every step changes the tables";

  std::int64_t gone = 0, changed = 0, alive = 0;
  for (const auto& [step, base] : expected) {
    for (const auto& table : read_checkpoint_manifest(checkpoint("changes", step)).tables) {
      gone += table.at("increment").at("gone").get<std::int64_t>();
      changed += table.at("increment").at("rows").get<std::int64_t>();
      alive += table.at("rows_alive").get<std::int64_t>();
    }
  }
  EXPECT_GT(gone, 0) << "rows were evicted";
  EXPECT_LT(changed, alive) << "not every row changes";

  for (const int ranks : {2, 3}) {
    const std::string name = "ranks" + std::to_string(ranks);
    options_.checkpoint.incremental = false;
    run_on(ranks, name + "whole");
    options_.checkpoint.incremental = true;
    run_on(ranks, name);
    EXPECT_EQ(bases(name), expected);
    for (const std::int64_t step : {4, 6, 8, 10, 12})
      EXPECT_EQ(tables_of(name, step), tables_of(name + "whole", step)) << ranks << " ranks, step " << step;
  }
}

TEST_F(IncrementalRun, ContinuesToTheBitAfterInterruptions) {
  options_.checkpoint.incremental = true;
  run("whole");
  int n = 0;
  for (const int step : {1, 3, 4, 7, 9, 11}) {
    const std::string name = "parts" + std::to_string(n++);
    interrupt_and_resume(name, "step.end", step);
    expect_same_run("whole", name);
    EXPECT_EQ(bases(name).at(12), 8) << "an interruption does not move the whole checkpoints";
  }
}

// Trap: what is saved after a crash has changes since another checkpoint than the one it names.
TEST_F(IncrementalRun, ContinuesToTheBitAfterACrashInASave) {
  options_.checkpoint.incremental = true;
  run("whole");
  struct Crash {};
  int n = 0;
  for (const char* point : {"save.file", "save.rename", "save.renamed"}) {
    for (const int count : {1, 2, 4}) {
      SCOPED_TRACE(fmt::format("{} {}", point, count));
      const std::string name = "parts" + std::to_string(n++);
      at(point, count, [] { throw Crash(); });
      EXPECT_THROW(run(name), Crash);
      watch_fault_points({});
      EXPECT_EQ(resume(name).reason, "completed");
      expect_same_run("whole", name);
    }
  }
}

TEST_F(IncrementalRun, ContinuesOnAnotherNumberOfRanks) {
  const std::int64_t steps = options_.training.max_steps;
  for (const bool incremental : {false, true}) {
    const std::string name = incremental ? "changes" : "whole";
    options_.checkpoint.incremental = incremental;
    options_.training.max_steps = 6;
    run_on(3, name);
    options_.training.max_steps = steps;
    run_on(2, name, true);
  }
  EXPECT_EQ(bases("changes").at(6), 2);
  EXPECT_EQ(tables_of("changes", 12), tables_of("whole", 12));
}

TEST_F(IncrementalRun, KeepsWhatKeptCheckpointsContinue) {
  options_.checkpoint.incremental = true;
  options_.checkpoint.keep = 1;
  run("run");
  EXPECT_THAT(checkpoint_names(folder_ / "run"), ElementsAre("current", "step_00000008", "step_00000012"));
  EXPECT_NO_THROW(Checkpoint{checkpoint("run", 12)});
}

TEST_F(IncrementalRun, NamesTheCheckpointThatIsMissingOrDamaged) {
  options_.checkpoint.incremental = true;
  run("run");
  const Path base = checkpoint("run", 8), away = folder_ / "away";
  fs::rename(base, away);
  EXPECT_THAT(message_of([&] { Checkpoint{checkpoint("run", 12)}; }),
              AllOf(HasSubstr("step_00000012"), HasSubstr("since step 8"), HasSubstr("step_00000008"),
                    HasSubstr("step_00000006 is good")));
  fs::copy(checkpoint("run", 2), base, fs::copy_options::recursive);
  EXPECT_THAT(message_of([&] { Checkpoint{checkpoint("run", 12)}; }),
              HasSubstr("step_00000008 is another checkpoint of that step"));
  fs::remove_all(base);
  fs::rename(away, base);
  fs::resize_file(base / "tables" / "item.safetensors", 100);
  EXPECT_THAT(message_of([&] { Checkpoint{checkpoint("run", 12)}; }),
              AllOf(HasSubstr("since step 8"), HasSubstr("item.safetensors"), HasSubstr("torn")));
}

TEST_F(IncrementalRun, SavesWholeCheckpointsWhenTheirBaseIsDamaged) {
  options_.checkpoint.incremental = true;
  at("save.begin", 3, [&] { fs::remove(checkpoint("run", 2) / "tables" / "item.safetensors"); });
  run("run");
  EXPECT_EQ(bases("run"), (std::map<std::int64_t, std::int64_t>{{4, 2}, {8, 6}, {10, 6}}));
}

// Trap: scores of the old eviction would come back with the rows of the base.
TEST_F(IncrementalRun, SavesEveryRowOfATableWhoseEvictionChanged) {
  options_.checkpoint.incremental = true;
  options_.training.max_steps = 4;
  run("run");
  options_.training.max_steps = 6;
  options_.tables.by_name["item"].evict = Evict::lru_lfu;
  resume("run", -1, {"training.max_steps", "tables.item.evict"});
  for (const auto& table : read_checkpoint_manifest(checkpoint("run", 6)).tables)
    EXPECT_EQ(table.contains("increment"), table.at("name") != "item");
  EXPECT_NO_THROW(Checkpoint{checkpoint("run", 6)});
}

}  // namespace
}  // namespace hstu::testing
