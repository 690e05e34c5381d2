// Tables that have more ids than the checkpoint they continue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/support.h"
#include "hstu/base/error.h"
#include "hstu/checkpoint/checkpoint.h"
#include "hstu/embedding/table_section.h"
#include "support/table_rows.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_checkpoint::TemporaryFolder;
using testing_embedding::apply_gradients;
using testing_embedding::rows_of;

TableSet table_of(std::int64_t rows, InitialKind kind = InitialKind::uniform, std::int64_t cache_rows = 0) {
  return TableSet(
      {{.name = "item", .rows = rows, .dim = 3, .initial = {.kind = kind}, .cache_rows = cache_rows}},
      {.kind = RowOptimizerKind::adam}, 5);
}

std::vector<float> row_of(TableSet& tables, std::int64_t id) {
  return rows_of(tables[0], tables[0].select(std::span(&id, 1), RowAccess::read));
}

Path save(TableSet& tables, const Path& folder, std::int64_t step) {
  return save_checkpoint(folder, step, table_sections(tables), {});
}

class GrowingTable : public testing::TestWithParam<InitialKind> {};

TEST_P(GrowingTable, KeepsTheInitialValuesOfItsFirstStart) {
  for (const std::int64_t cache_rows : {0, 50}) {
    const TemporaryFolder folder;
    TableSet first = table_of(100, GetParam());
    const std::vector<std::int64_t> ids{3, 42};
    const std::vector<float> ones(6, 1.0f);
    apply_gradients(first[0], ids, ones.data(), 0.1);

    TableSet grown = table_of(400, GetParam(), cache_rows), again = table_of(1000, GetParam());
    Checkpoint(save(first, folder, 1)).load(table_sections(grown));
    Checkpoint(save(grown, folder, 2)).load(table_sections(again));
    TableSet fresh = table_of(1000, GetParam());
    for (TableSet* const tables : {&grown, &again}) {
      EXPECT_EQ((*tables)[0].rows_alive(), 2);
      for (const std::int64_t id : {0, 3, 42, 99}) EXPECT_EQ(row_of(*tables, id), row_of(first, id)) << id;
    }
    // A new id has the values that a table of 100 ids would give it: on the bound of the first start.
    for (const std::int64_t id : {100, 399}) {
      std::vector<float> expected(3);
      initial_row(first[0].key(), id, {.kind = GetParam()}, initial_bound({.kind = GetParam()}, 100, 3), 3,
                  expected.data());
      EXPECT_EQ(row_of(grown, id), expected);
      EXPECT_EQ(row_of(again, id), expected);
      EXPECT_NE(row_of(fresh, id), expected) << "it has a bound of its own";
    }
    const std::int64_t created = 250;
    const std::vector<float> before = row_of(grown, created);
    const Handles trained = grown[0].select(std::span(&created, 1), RowAccess::train);
    EXPECT_EQ(rows_of(grown[0], trained), before);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GrowingTable, testing::Values(InitialKind::uniform, InitialKind::xavier));

TEST(ShrinkingTable, IsRefusedByNameAndSizes) {
  const TemporaryFolder folder;
  TableSet first = table_of(100), smaller = table_of(99);
  const Checkpoint checkpoint(save(first, folder, 1));
  try {
    checkpoint.load(table_sections(smaller));
    FAIL() << "the table lost an id";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("item"), HasSubstr("100"), HasSubstr("99")));
  }
}

TEST(UnchangedTable, DoesNotNameItsFirstSize) {
  const TemporaryFolder folder;
  TableSet first = table_of(100), same = table_of(100);
  const Path path = save(first, folder, 1);
  Checkpoint(path).load(table_sections(same));
  const Checkpoint again(save(same, folder, 2));
  EXPECT_EQ(again.section("tables/item").description(),
            Checkpoint(path).section("tables/item").description());
  EXPECT_FALSE(again.section("tables/item").description().contains("first_rows"));
}

}  // namespace
}  // namespace hstu
