// Runs whose tables have a rate of their own, or stay as they are.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "hstu/embedding/saved_table.h"
#include "training/ranked_run.h"

namespace hstu::testing {
namespace {

class TableRates : public RankedRun {
 protected:
  TableRates() {
    options_.training.max_steps = 8;
    options_.checkpoint = {.every_steps = 3, .every_seconds = 0, .keep = 0};
  }

  // The rows of a table by id, in the newest checkpoint.
  std::map<std::int64_t, std::vector<float>> rows_of(const std::string& run, const std::string& name) const {
    const Checkpoint checkpoint(find_checkpoint(folder_ / run / "checkpoints", -1));
    const SavedTable table(checkpoint.section("tables/" + name));
    std::map<std::int64_t, std::vector<float>> rows;
    for (std::size_t i = 0; i < table.size(); ++i)
      rows[table.ids()[i]] = {table.row(i).begin(), table.row(i).end()};
    return rows;
  }
};

TEST_F(TableRates, AFactorOfAllTablesIsThatOfTheRate) {
  for (const char* const kind : {"rowwise_adagrad", "sgd", "adam", "adamw", "adagrad"}) {
    options_.sparse.kind = parse_word(kRowOptimizers, kind, "optimizer");
    options_.sparse.learning_rate = 0.05;
    for (const char* const name : {"item", "user"}) options_.tables.by_name[name].rate_factor = 1;
    const std::string half = std::string("half ") + kind, factor = std::string("factor ") + kind;
    run(half);
    options_.sparse.learning_rate = 0.1;
    for (const char* const name : {"item", "user"}) options_.tables.by_name[name].rate_factor = 0.5;
    run(factor);
    EXPECT_EQ(learner_tensors(half), learner_tensors(factor));
  }
}

TEST_F(TableRates, AFactorOfOneTableChangesItsRows) {
  run("same");
  options_.tables.by_name["item"].rate_factor = 0.1;
  run("slow");
  EXPECT_NE(rows_of("same", "item"), rows_of("slow", "item"));
}

TEST_F(TableRates, AFrozenTableKeepsTheRowsOfAWarmStartAndTheOthersLearn) {
  run("before");
  options_.warm_start.checkpoint = find_checkpoint(folder_ / "before" / "checkpoints", -1);
  options_.tables.by_name["item"].frozen = true;
  for (const char* const kind : {"rowwise_adagrad", "adamw"}) {
    options_.tables.by_name["item"].optimizer = kind;
    run(kind);
    const auto before = rows_of("before", "item"), after = rows_of(kind, "item");
    for (const auto& [id, row] : before) EXPECT_EQ(after.at(id), row) << id;
    EXPECT_NE(rows_of("before", "user"), rows_of(kind, "user"));
  }
}

TEST_F(TableRates, AFrozenTableIsTheSameOverRanksAndInChangesOfCheckpoints) {
  options_.tables.by_name["item"].frozen = true;
  run_on(1, "one");
  run_on(3, "three");
  EXPECT_EQ(rows_of("one", "item"), rows_of("three", "item"));
  options_.checkpoint.incremental = true;
  run_on(1, "changes");
  EXPECT_EQ(rows_of("one", "item"), rows_of("changes", "item"));
  EXPECT_EQ(rows_of("one", "user"), rows_of("changes", "user"));
}

}  // namespace
}  // namespace hstu::testing
