// Runs whose tables have initial values and optimizers of their own.
#include <gmock/gmock.h>

#include "hstu/embedding/saved_table.h"
#include "support/table_rows.h"
#include "training/ranked_run.h"

namespace hstu::testing {
namespace {

struct OfTable {
  const char* optimizer;
  std::int64_t state_width;
  InitialValue initial;
};
void PrintTo(const OfTable& table, std::ostream* out) {
  *out << table.optimizer;
}

class TableKinds : public RankedRun, public ::testing::WithParamInterface<std::array<OfTable, 3>> {
 protected:
  TableKinds() {
    options_.training.max_steps = 8;
    options_.checkpoint = {.every_steps = 3, .every_seconds = 0, .keep = 0};
    options_.features.context.push_back({"hour", {"hour"}, 0, false});
    for (std::size_t t = 0; t < 3; ++t) {
      TableSection& table = options_.tables.by_name[kNames[t]];
      table.optimizer = GetParam()[t].optimizer;
      table.initial = GetParam()[t].initial;
    }
  }
  static constexpr const char* kNames[] = {"item", "user", "hour"};
};

TEST_P(TableKinds, TrainResumeAndSaveWhatTheirSectionsSay) {
  run("whole");
  const Checkpoint checkpoint(find_checkpoint(folder_ / "whole" / "checkpoints", -1));
  for (std::size_t t = 0; t < 3; ++t) {
    const SavedTable table(checkpoint.section(std::string("tables/") + kNames[t]));
    EXPECT_EQ(table.description().at("optimizer"), GetParam()[t].optimizer);
    EXPECT_EQ(table.state_width(), GetParam()[t].state_width);
    EXPECT_GT(table.size(), 0u);
  }
  // An id that no sample has reads as the initial value of its own table.
  Experiment experiment(options_);
  load_run(checkpoint, experiment);
  for (std::size_t t = 0; t < 3; ++t) {
    EmbeddingTable& table = experiment.learner().tables[t];
    ASSERT_EQ(table.config().name, kNames[t]);
    for (std::int64_t id = 0; id < table.config().rows; ++id) {
      if (table.contains(id)) continue;
      std::vector<float> expected(8);
      const std::vector<float> found =
          testing_embedding::rows_of(table, table.select(std::span(&id, 1), RowAccess::read));
      initial_row(table.key(), id, GetParam()[t].initial,
                  initial_bound(GetParam()[t].initial, table.config().rows, 8), 8, expected.data());
      EXPECT_EQ(found, expected) << kNames[t] << " " << id;
    }
  }

  interrupt_and_resume("parts", "step.end", 4);
  expect_same_run("whole", "parts");

  run_on(2, "ranks");
  EXPECT_EQ(log("ranks", "train").back().at("table_rows"), log("whole", "train").back().at("table_rows"));
}

constexpr InitialValue kNormal{.kind = InitialKind::normal, .deviation = 0.1};
constexpr InitialValue kTruncated{.kind = InitialKind::truncated_normal, .mean = 0.1, .deviation = 0.05};
constexpr InitialValue kConstant{.kind = InitialKind::constant, .value = 0.25};
constexpr InitialValue kXavier{.kind = InitialKind::xavier};
constexpr InitialValue kUniform{.kind = InitialKind::uniform, .bound = 0.5};

INSTANTIATE_TEST_SUITE_P(
    EveryKind, TableKinds,
    ::testing::Values(std::array{OfTable{"adagrad", 8, kNormal}, OfTable{"adamw", 17, kTruncated},
                                 OfTable{"sgd", 0, kConstant}},
                      std::array{OfTable{"adam", 17, kXavier}, OfTable{"rowwise_adagrad", 1, kUniform},
                                 OfTable{"adagrad", 8, kConstant}}));

}  // namespace
}  // namespace hstu::testing
