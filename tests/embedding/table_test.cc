#include "hstu/embedding/table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/base/error.h"
#include "hstu/embedding/table_set.h"

namespace hstu {
namespace {

using namespace testing_embedding;
using testing::Each;

constexpr RowOptimizer kSgd{.kind = RowOptimizerKind::sgd};

TEST(EmbeddingTable, InitialValueIsAFunctionOfSeedTableIdAndColumn) {
  EmbeddingTable table({"item", 1000, 10}, {}, 5);
  const auto values = train_lookup(table, {7});
  EXPECT_EQ(values, train_lookup(table, {7}));
  EmbeddingTable same({"item", 1000, 10}, kSgd, 5);
  EXPECT_EQ(values, train_lookup(same, {7})) << "the optimizer must not matter";
  EmbeddingTable wider({"item", 1000, 13}, {}, 5);
  auto first_columns = train_lookup(wider, {7});
  first_columns.resize(10);
  EXPECT_EQ(values, first_columns) << "a column must not depend on how many there are";
  EmbeddingTable other_seed({"item", 1000, 10}, {}, 6);
  EXPECT_NE(values, train_lookup(other_seed, {7}));
  EXPECT_NE(values, train_lookup(table, {8}));
}

TEST(EmbeddingTable, InitialValueHasTheGoldenValuesOfPhilox) {
  // By hand from the definition: column c of id is word c % 4 of philox(key, id, c / 4).
  EmbeddingTable table({"item", 16, 6}, {}, 5);
  const auto values = train_lookup(table, {3});
  for (std::uint64_t c = 0; c < 6; ++c) {
    const std::uint32_t word = philox(derive_key(5, "table:item"), 3, c / 4)[c % 4];
    EXPECT_FLOAT_EQ(values[c], (2.0f * to_unit_float(word) - 1.0f) * 0.25f) << c;
  }
}

TEST(EmbeddingTable, InitialValuesDependNeitherOnTouchOrderNorOnThreads) {
  const Ids ids = range(0, 20000);
  Ids backwards = ids;
  std::reverse(backwards.begin(), backwards.end());
  EmbeddingTable one({"item", 20000, 9}, {}, 1), many({"item", 20000, 9}, {}, 1);
  std::vector<float> a, b;
  {
    const Threads threads(1);
    a = train_lookup(one, ids);
  }
  {
    const Threads threads(4);
    train_lookup(many, backwards);
    b = train_lookup(many, ids);
  }
  EXPECT_EQ(a, b);
}

TEST(EmbeddingTable, InitialValuesAreUniformWithinOneOverRootV) {
  constexpr std::int64_t kRows = 4096;
  EmbeddingTable table({"item", kRows, 32}, {}, 3);
  const auto values = train_lookup(table, range(0, kRows));
  const double bound = 1.0 / 64.0;
  double sum = 0.0, squares = 0.0;
  for (const float v : values) {
    ASSERT_LE(std::abs(v), bound);
    sum += v / bound;
    squares += v / bound * (v / bound);
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0.0, 5.0 / std::sqrt(3.0 * n));  // five standard errors
  EXPECT_NEAR(squares / n, 1.0 / 3.0, 5.0 * 0.298 / std::sqrt(n));
  EXPECT_LT(*std::min_element(values.begin(), values.end()), -0.999 * bound);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 0.999 * bound);
}

TEST(EmbeddingTable, EvaluationCreatesNoRowAndSeesWhatTrainingWillSee) {
  EmbeddingTable table({"item", 1'000'000'000'000, 8}, {}, 1);
  const Ids ids{5, 999'999'999'999, 5, 123'456'789'012};
  const auto seen = eval_lookup(table, ids);
  EXPECT_EQ(table.rows_alive(), 0);
  EXPECT_FALSE(table.contains(5));
  EXPECT_EQ(seen, train_lookup(table, ids));
  EXPECT_EQ(table.rows_alive(), 3);
  EXPECT_EQ(seen, eval_lookup(table, ids));
}

TEST(EmbeddingTable, NominalRowsCostNothing) {
  const EmbeddingTable table({"cross", 100'000'000, 512}, {}, 1);
  EXPECT_EQ(table.bytes(), 0);
}

TEST(EmbeddingTable, TwoTablesNeverShareRows) {
  TableSet tables({{"a", 100, 4}, {"b", 100, 4}}, kSgd, 1);
  const auto a = train_lookup(tables[0], {3}), b = train_lookup(tables[1], {3});
  EXPECT_NE(a, b) << "equal ids of two tables must start apart";
  const std::vector<float> gradient(4, 1.0f);
  apply_gradients(tables[0], Ids{3}, gradient.data(), 0.5);
  EXPECT_NE(a, eval_lookup(tables[0], {3}));
  EXPECT_EQ(b, eval_lookup(tables[1], {3}));
  EXPECT_FALSE(tables[1].contains(4));
}

TEST(EmbeddingTable, GrowthKeepsValuesAndState) {
  // 64 columns: a chunk holds 4,096 rows, so these rows fill several.
  EmbeddingTable table({"item", 100'000, 64}, {.kind = RowOptimizerKind::adam}, 1);
  const Ids early{0, 99'999, 777};
  train_lookup(table, early);
  const auto gradient = random_values(3 * 64, 2);
  apply_gradients(table, early, gradient.data(), 0.1);
  const auto before = eval_lookup(table, early);
  const auto copy_state = [&] {
    std::vector<float> state;
    for (const auto& row : rows_by_id(table))
      if (std::find(early.begin(), early.end(), row.id) != early.end())
        state.insert(state.end(), row.state.begin(), row.state.end());
    return state;
  };
  const auto state = copy_state();
  train_lookup(table, range(1000, 30'000));
  EXPECT_EQ(table.rows_alive(), 29'003);
  EXPECT_EQ(before, eval_lookup(table, early));
  EXPECT_EQ(state, copy_state());
}

TEST(EmbeddingTable, StateIsZeroAtBirthAndHasItsOwnPlace) {
  for (const std::int64_t dim : {1, 7, 64, 300}) {
    for (const auto kind :
         {RowOptimizerKind::rowwise_adagrad, RowOptimizerKind::sgd, RowOptimizerKind::adam}) {
      EmbeddingTable table({"item", 5000, dim}, {.kind = kind}, 1);
      const std::int64_t width = kind == RowOptimizerKind::adam  ? 2 * dim + 1
                                 : kind == RowOptimizerKind::sgd ? 0
                                                                 : 1;
      ASSERT_EQ(table.state_width(), width);
      const Ids all = range(0, 5000);
      const auto initial = train_lookup(table, all);
      for (const auto& row : rows_by_id(table)) {
        for (std::int64_t i = 0; i < width; ++i) ASSERT_EQ(row.state[i], 0.0f) << "row " << row.id;
      }
      // One row moves; every other value and state stays to the bit.
      const std::vector<float> ones(static_cast<std::size_t>(dim), 1.0f);
      apply_gradients(table, Ids{2500}, ones.data(), 0.5);
      for (const auto& row : rows_by_id(table)) {
        const float* start = initial.data() + row.id * dim;
        ASSERT_EQ(std::equal(row.values.begin(), row.values.end(), start), row.id != 2500);
        for (std::int64_t i = 0; i < width; ++i)
          ASSERT_EQ(row.state[i] != 0.0f, row.id == 2500) << "row " << row.id << " state " << i;
      }
    }
  }
}

TEST(EmbeddingTable, IdsOutsideTheTableReadTheNullRowNeverRowZeroNorTheNextTable) {
  constexpr std::int64_t kRows = 10;
  EmbeddingTable table({"item", kRows, 5}, {}, 1);
  const Ids bad{-1, kRows, kRows + 1, std::numeric_limits<std::int64_t>::max(),
                std::numeric_limits<std::int64_t>::min()};
  const auto row_zero = train_lookup(table, {0});
  EXPECT_THAT(eval_lookup(table, bad), Each(0.0f));
  EXPECT_THAT(train_lookup(table, bad), Each(0.0f));
  const auto gradients = random_values(bad.size() * 5, 1);
  apply_gradients(table, bad, gradients.data(), 1.0);
  EXPECT_THAT(eval_lookup(table, bad), Each(0.0f)) << "the null row takes no gradient";
  EXPECT_EQ(table.rows_alive(), 1) << "the null row is not stored";
  EXPECT_EQ(row_zero, eval_lookup(table, {0}));
  EXPECT_NE(train_lookup(table, {kRows - 1}), std::vector<float>(5, 0.0f)) << "the last row is a good one";
}

TEST(EmbeddingTable, ResultsDoNotDependOnThreads) {
  std::vector<std::vector<float>> results;
  for (const int n : {1, 2, 5}) {
    const Threads threads(n);
    EmbeddingTable table({"item", 1'000'000, 33}, {}, 1);
    for (std::uint64_t step = 0; step < 4; ++step) {
      const Ids ids =
          range(static_cast<std::int64_t>(step) * 1500, static_cast<std::int64_t>(step) * 1500 + 9000);
      train_lookup(table, ids);
      const auto gradients = random_values(ids.size() * 33, step);
      apply_gradients(table, ids, gradients.data(), 0.05);
    }
    results.push_back(eval_lookup(table, range(0, 15'000)));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(EmbeddingTable, AnIdThatStandsTwiceInOneUpdateIsADefect) {
  EmbeddingTable table({"item", 100, 2}, {}, 1);
  const std::vector<float> gradients(6, 1.0f);
  EXPECT_THROW(apply_gradients(table, Ids{4, 5, 4}, gradients.data(), 0.1), InternalError);
}

TEST(EmbeddingTable, AGradientForARowNeverReadStartsFromItsInitialValue) {
  EmbeddingTable table({"item", 100, 2}, kSgd, 1);
  const auto initial = eval_lookup(table, {4});
  const std::vector<float> gradient{1.0f, -2.0f};
  apply_gradients(table, Ids{4}, gradient.data(), 0.5);
  EXPECT_EQ(eval_lookup(table, {4}), (std::vector<float>{initial[0] - 0.5f, initial[1] + 1.0f}));
}

TEST(EmbeddingTable, CountsRowsAndBytes) {
  EmbeddingTable table({"item", 100, 4}, {}, 1);
  train_lookup(table, {1, 2, 1, -5, 100});
  EXPECT_EQ(table.rows_alive(), 2);
  EXPECT_GT(table.bytes(), 0);
}

TEST(EmbeddingTable, EmptyListsAreFine) {
  EmbeddingTable table({"item", 100, 4}, {}, 1);
  EXPECT_TRUE(train_lookup(table, {}).empty());
  EXPECT_TRUE(eval_lookup(table, {}).empty());
  apply_gradients(table, {}, nullptr, 0.1);
  EXPECT_EQ(table.rows_alive(), 0);
}

TEST(EmbeddingTable, RestoreBringsBackValuesAndState) {
  EmbeddingTable table({"item", 5000, 12}, {.kind = RowOptimizerKind::adam}, 1);
  const Ids ids{4999, 3, 700};
  const auto gradients = random_values(3 * 12, 1);
  apply_gradients(table, ids, gradients.data(), 0.1);
  Ids saved;
  std::vector<float> values, state;
  for (const auto& row : rows_by_id(table)) {
    saved.push_back(row.id);
    values.insert(values.end(), row.values.begin(), row.values.end());
    state.insert(state.end(), row.state.begin(), row.state.end());
  }
  EXPECT_EQ(saved, (Ids{3, 700, 4999}));
  EmbeddingTable again({"item", 5000, 12}, {.kind = RowOptimizerKind::adam}, 1);
  again.restore(saved, values.data(), state.data());
  apply_gradients(table, ids, gradients.data(), 0.1);
  apply_gradients(again, ids, gradients.data(), 0.1);
  EXPECT_EQ(eval_lookup(table, range(0, 5000)), eval_lookup(again, range(0, 5000)));
}

TEST(EmbeddingTable, RestoreRefusesIdsOutOfOrderOrRange) {
  const std::vector<float> values(6, 0.0f), state(3, 0.0f);
  for (const Ids& ids : {Ids{1, 1, 2}, Ids{2, 1, 3}, Ids{-1, 1, 2}, Ids{1, 2, 10}}) {
    EmbeddingTable table({"item", 10, 2}, {}, 1);
    EXPECT_THROW(table.restore(ids, values.data(), state.data()), Error);
  }
}

TEST(EmbeddingTable, RefusesNamesAndSizesThatCannotBe) {
  EXPECT_THROW(EmbeddingTable({"", 1, 1}, {}, 1), UsageError);
  EXPECT_THROW(EmbeddingTable({"../a", 1, 1}, {}, 1), UsageError);
  EXPECT_THROW(EmbeddingTable({"a", 0, 1}, {}, 1), UsageError);
  EXPECT_THROW(EmbeddingTable({"a", 1, 0}, {}, 1), UsageError);
  EXPECT_THROW(EmbeddingTable({"a", 1, 1}, {.epsilon = 0.0}, 1), UsageError);
  EXPECT_THROW(TableSet({{"a", 1, 1}, {"a", 2, 1}}, {}, 1), UsageError);
}

TEST(TableSet, ServesAllTablesAtOnce) {
  TableSet tables({{"a", 100, 4}, {"b", 100, 4}, {"c", 100, 4}}, kSgd, 1);
  const Ids a{3, 500, 7}, b{3};  // 500 is outside: the null row
  const std::vector<Tensor> ids{tensor(a), tensor(b), tensor({})};
  const RowSelection seen = tables.select(ids, RowAccess::read);
  const std::vector<Tensor> before = tables.gather(seen);
  EXPECT_EQ(tables.rows_alive(), 0);
  const RowSelection selection = tables.select(ids, RowAccess::train);
  const std::vector<Tensor> rows = tables.gather(selection);
  EXPECT_EQ(tables.rows_alive(), 3);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].shape(), (Shape{3, 4}));
  EXPECT_EQ(rows[2].shape(), (Shape{0, 4}));
  for (std::int64_t i = 0; i < 12; ++i) EXPECT_EQ(rows[0].data<float>()[i], before[0].data<float>()[i]);
  // A table without a gradient does not move.
  const std::vector<Tensor> gradients{Tensor::from<float>({3, 4}, std::vector<float>(12, 1.0f)), {}, {}};
  tables.update(selection, gradients, {.learning_rate = 0.5});
  EXPECT_EQ(eval_lookup(tables[0], {3})[0], rows[0].data<float>()[0] - 0.5f);
  EXPECT_EQ(eval_lookup(tables[1], {3})[0], rows[1].data<float>()[0]);
}

}  // namespace
}  // namespace hstu
