// The rows of a list of ids: blocks, and updates of all of them, against plain arrays.
#include "hstu/embedding/catalogue.h"

#include <map>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/base/error.h"
#include "hstu/base/float16.h"
#include "hstu/comm/thread_group.h"
#include "hstu/embedding/row_gradients.h"
#include "hstu/embedding/table_division.h"

namespace hstu {
namespace {

using namespace testing_embedding;
using testing::HasSubstr;

constexpr RowOptimizer kCatalogueSgd{.kind = RowOptimizerKind::sgd};
constexpr std::int64_t kCatalogueIds = 60, kCatalogueDim = 3;

Ids every_third() {
  Ids ids;
  for (std::int64_t id = 1; id < kCatalogueIds; id += 3) ids.push_back(id);
  return ids;
}

TableConfig catalogue_items() {
  return {.name = "item", .rows = kCatalogueIds, .dim = kCatalogueDim};
}

// Rows of `catalogue` by id, read in blocks of `size`.
std::map<std::int64_t, std::vector<float>> read_catalogue(const Catalogue& catalogue, std::int64_t size) {
  std::map<std::int64_t, std::vector<float>> rows;
  for (std::int64_t first = 0; first < catalogue.size(); first += size) {
    Tensor block = Tensor::empty({std::min(size, catalogue.size() - first), kCatalogueDim}, DType::f32);
    catalogue.read(first, block);
    for (std::int64_t i = 0; i < block.rows(); ++i)
      rows[catalogue.ids()[first + i]] = {block.data<float>() + i * kCatalogueDim,
                                          block.data<float>() + (i + 1) * kCatalogueDim};
  }
  return rows;
}

TEST(Catalogue, HasTheRowsOfItsIdsInBlocksOfAnySize) {
  TableConfig cached = catalogue_items();
  cached.cache_rows = 20;
  for (const TableConfig& config : {catalogue_items(), cached}) {
    for (const RowAccess access : {RowAccess::train, RowAccess::read}) {
      TableSet tables({config}, kCatalogueSgd, 1);
      apply_gradients(tables[0], range(0, 10), random_values(30, 4).data(), 0.5);
      tables.end_step();
      const Catalogue catalogue(tables, 0, every_third(), access);
      EXPECT_EQ(tables[0].rows_alive(), access == RowAccess::train ? 10 + 17 : 10);
      for (const std::int64_t size : {1, 7, 100}) {
        const auto rows = read_catalogue(catalogue, size);
        ASSERT_EQ(rows.size(), 20u);
        for (const auto& [id, row] : rows) EXPECT_EQ(row, eval_lookup(tables[0], {id})) << id;
      }
      Tensor narrow = Tensor::empty({20, kCatalogueDim}, DType::bf16);
      catalogue.read(0, narrow);
      const auto second = eval_lookup(tables[0], {4});
      for (std::size_t c = 0; c < second.size(); ++c)
        EXPECT_EQ(narrow.data<BFloat16>()[kCatalogueDim + static_cast<std::int64_t>(c)].bits(),
                  BFloat16(second[c]).bits());
    }
  }
}

// Steps in which two parts of a batch read rows, some of which are in the list, and every row of the list has
// a gradient. Whole numbers, so that no order of sums matters.
void train_catalogue(TableSet& tables, Catalogue& catalogue, Communicator& comm) {
  for (int step = 0; step < 3; ++step) {
    RowGradients gradients(tables);
    for (const std::int64_t first : {step, step + 5}) {
      const Ids ids{first, first + 1, first + 2};
      const Tensor values = Tensor::from<float>({3, kCatalogueDim}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
      RowSelection selection;
      if (comm.size() == 1) {
        selection = tables.select(std::vector{tensor(ids)}, RowAccess::train);
      } else {
        HostLookup(tables, std::vector{tensor(ids)}).finish(RowAccess::train);
        selection.tables.push_back({.ids = tensor(ids), .handles = {}});
      }
      gradients.add(std::move(selection), {values.copy()});
    }
    Tensor dense = catalogue.gradient();
    for (std::int64_t i = 0; i < dense.size(); ++i) {
      EXPECT_EQ(dense.data<float>()[i], 0) << "a step begins";
      dense.mutable_data<float>()[i] = static_cast<float>(catalogue.ids()[i / kCatalogueDim] + step);
    }
    gradients.add(catalogue);
    gradients.merge(comm);
    gradients.apply({.learning_rate = 0x1p-10});
    tables.end_step();
  }
}

// The same on one array; `ranks` ranks read the same rows.
std::map<std::int64_t, std::vector<float>> expected_catalogue(int ranks) {
  EmbeddingTable fresh(catalogue_items(), kCatalogueSgd, 1);
  std::map<std::int64_t, std::vector<float>> rows;
  for (std::int64_t id = 0; id < kCatalogueIds; ++id) rows[id] = eval_lookup(fresh, {id});
  for (int step = 0; step < 3; ++step) {
    std::map<std::int64_t, std::vector<float>> sums;
    for (const std::int64_t id : every_third()) sums[id].assign(kCatalogueDim, static_cast<float>(id + step));
    for (const std::int64_t first : {step, step + 5}) {
      for (std::int64_t i = 0; i < 3; ++i) {
        std::vector<float>& sum = sums[first + i];
        sum.resize(kCatalogueDim, 0);
        for (std::int64_t c = 0; c < kCatalogueDim; ++c)
          sum[static_cast<std::size_t>(c)] += static_cast<float>(ranks * (i * kCatalogueDim + c + 1));
      }
    }
    for (const auto& [id, sum] : sums)
      for (std::size_t c = 0; c < sum.size(); ++c) rows[id][c] -= 0x1p-10f * sum[c];
  }
  return rows;
}

TEST(Catalogue, UpdatesAllItsRowsOnceByDenseAndSparseGradients) {
  TableConfig cached = catalogue_items();
  cached.cache_rows = 40;
  const auto expected = expected_catalogue(1);
  for (const TableConfig& config : {catalogue_items(), cached}) {
    TableSet tables({config}, kCatalogueSgd, 1);
    Catalogue catalogue(tables, 0, every_third(), RowAccess::train);
    tables.end_step();
    train_catalogue(tables, catalogue, one_rank());
    for (const auto& [id, row] : expected) EXPECT_EQ(eval_lookup(tables[0], {id}), row) << id;
  }
}

// The optimizer's second state moves where no gradient is: the update has every row.
TEST(Catalogue, UpdatesRowsWhoseGradientIsZero) {
  TableSet tables({catalogue_items()}, {.kind = RowOptimizerKind::adamw, .weight_decay = 0.5}, 1);
  Catalogue catalogue(tables, 0, every_third(), RowAccess::train);
  const auto before = eval_lookup(tables[0], {1, 2});
  RowGradients gradients(tables);
  gradients.add(catalogue);
  gradients.merge(one_rank());
  gradients.apply({.learning_rate = 0.5});
  const auto after = eval_lookup(tables[0], {1, 2});
  for (std::size_t c = 0; c < 3; ++c) EXPECT_FLOAT_EQ(after[c], 0.75f * before[c]);
  for (std::size_t c = 3; c < 6; ++c) EXPECT_EQ(after[c], before[c]) << "not in the list";
}

TEST(Catalogue, IsDividedOverRanksAsItsTableIs) {
  constexpr int kRanks = 3;
  const auto expected = expected_catalogue(kRanks);
  for (const TableRanks form : {TableRanks::split, TableRanks::table, TableRanks::copy}) {
    std::vector<TableConfig> configs{catalogue_items()};
    configs[0].ranks = form;
    std::mutex mutex;
    std::map<std::int64_t, int> times;
    run_ranks(kRanks, [&](Communicator& comm) {
      TableSet tables(configs, kCatalogueSgd, 1, host_context(),
                      divide_tables(configs, kCatalogueSgd.kind, comm.rank(), kRanks));
      tables.share_over(comm, nullptr);
      Catalogue catalogue(tables, 0, every_third(), RowAccess::train);
      train_catalogue(tables, catalogue, comm);
      const std::vector<Tensor> all{tensor(range(0, kCatalogueIds))};
      const Tensor rows = HostLookup(tables, all).finish(RowAccess::read).rows.front();
      const std::scoped_lock lock(mutex);
      for (std::int64_t i = 0; i < catalogue.size(); ++i) ++times[catalogue.ids()[i]];
      for (const auto& [id, row] : expected)
        EXPECT_EQ(std::vector(rows.data<float>() + id * kCatalogueDim,
                              rows.data<float>() + (id + 1) * kCatalogueDim),
                  row)
            << id;
    });
    EXPECT_EQ(times.size(), 20u);
    for (const auto& [id, n] : times) EXPECT_EQ(n, 1) << id << ": on one rank";
  }
}

TEST(Catalogue, RefusesTablesThatCannotGiveAllTheirRows) {
  const auto error_of = [](const TableConfig& config, const RowOwners& owners) -> std::string {
    TableSet tables({config}, kCatalogueSgd, 1, host_context(), std::vector{owners});
    try {
      const Catalogue catalogue(tables, 0, every_third(), RowAccess::read);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of(catalogue_items(), {}), "");
  EXPECT_THAT(error_of(catalogue_items(), {.rank = 0, .ranks = 2, .form = TableRanks::column}),
              HasSubstr("tables.item.ranks"));
  TableConfig limited = catalogue_items(), small = catalogue_items();
  limited.limits.capacity = 100;
  EXPECT_THAT(error_of(limited, {}), HasSubstr("limits"));
  small.cache_rows = 19;
  EXPECT_THAT(error_of(small, {}), HasSubstr("20 rows, and the cache has room for 19"));
  small.cache_rows = 20;
  EXPECT_EQ(error_of(small, {}), "");
}

}  // namespace
}  // namespace hstu
