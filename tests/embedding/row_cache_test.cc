// Rows in host memory behind a cache: the same rows as without it, whatever comes and goes.
#include "hstu/rows/row_cache.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/base/error.h"
#include "hstu/embedding/table_set.h"
#include "hstu/rows/placement.h"
#include "sanitizers.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using namespace testing_embedding;
using testing::AllOf;
using testing::HasSubstr;

// Has the rows of a step come. Gives those that had no line.
std::size_t bring(RowCache& cache, std::span<const std::int64_t> slots) {
  std::vector<std::int64_t> lines(slots.size()), missing;
  RowCache::Found found;
  cache.pin(slots, 0, lines.data(), found);
  cache.count(found);
  for (const std::int64_t place : found.missing) missing.push_back(slots[static_cast<std::size_t>(place)]);
  cache.bring(missing);
  return missing.size();
}

Ids next_ids(RandomStream& random, std::int64_t rows) {
  return some_ids(random, random.below(3) == 0 ? rows : rows / 20, 60);
}

// Steps of two parts through `cached`, which differs from `config` in where its rows are: prefetched rows
// that the step before still updates, prefetches that were wrong, evaluation and checkpoints in between.
CacheCounts expect_no_bit_changed(const TableConfig& config, const TableConfig& cached_config,
                                  RowOptimizerKind kind, int steps) {
  TableSet plain_tables({config}, {.kind = kind}, 5), cached({cached_config}, {.kind = kind}, 5);
  EmbeddingTable &plain = plain_tables[0], &table = cached[0];
  RandomStream random{.key = 3};
  Ids next = next_ids(random, config.rows);
  for (int step = 0; step < steps; ++step) {
    for (const Ids& ids : {next, next_ids(random, config.rows)}) {
      EXPECT_EQ(train_lookup(table, ids), train_lookup(plain, ids)) << step;
      const auto gradients = random_values(ids.size() * 6, random.bits());
      if (random.below(8) == 0) {
        const Ids read = some_ids(random, config.rows, 400);
        EXPECT_EQ(eval_lookup(table, read), eval_lookup(plain, read)) << step;
      }
      apply_gradients(table, ids, gradients.data(), 0.05, step);
      apply_gradients(plain, ids, gradients.data(), 0.05, step);
    }
    next = next_ids(random, config.rows);
    if (random.below(8) != 0) {
      const Ids expected = random.below(8) == 0 ? next_ids(random, config.rows) : next;
      cached.prefetch(std::vector{tensor(expected)});
    }
    cached.end_step();
    if (step % 300 != 0 && step != steps - 1) continue;
    const auto expected = rows_by_id(plain), found = rows_by_id(table);
    EXPECT_EQ(found.size(), expected.size());
    for (std::size_t r = 0; r < std::min(found.size(), expected.size()); ++r) {
      EXPECT_EQ(found[r].id, expected[r].id);
      EXPECT_EQ(found[r].values, expected[r].values) << step;
      EXPECT_EQ(found[r].state, expected[r].state) << step;
    }
    if (testing::Test::HasFailure()) break;
  }
  return *table.cache_counts();
}

// The cache holds little more than one of the two parts of a step.
TEST(RowCache, ChangesNoBitOverThousandsOfSteps) {
  const int steps = kSanitized ? 300 : 2000;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const auto& [word, kind] : kRowOptimizers) {
      const TableConfig config{.name = "item", .rows = 2000, .dim = 6, .dtype = dtype};
      TableConfig cached = config;
      cached.cache_rows = 125;
      const CacheCounts counts = expect_no_bit_changed(config, cached, kind, steps);
      EXPECT_GT(counts.prefetched, 5 * steps);
      EXPECT_GT(counts.misses, steps / 2);
      EXPECT_GT(counts.hits, 5 * steps);
      const RowOptimizer optimizer{.kind = kind};
      const std::int64_t row_bytes =
          stored_floats({.dim = 6, .state_width = optimizer.state_width(6), .dtype = dtype}) * 4;
      EXPECT_EQ(counts.bytes_in, (counts.misses + counts.prefetched) * row_bytes);
    }
  }
}

// The upper cache is far too small for the rows that go through it, and the lower one too in the last two
// cases.
TEST(RowCache, ChangesNoBitAboveALowerCacheAndADisk) {
  if (!std::filesystem::exists(HSTU_PROGRAM_DIR "/libhstu_rocksdb.so"))
    GTEST_SKIP() << "built without RocksDB";
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const std::int64_t host_rows : {400, 3, 1}) {
      const TableConfig config{.name = "item", .rows = 2000, .dim = 6, .dtype = dtype};
      TableConfig cached = config;
      cached.place = TableTier::disk;
      cached.disk_folder = temporary_folder();
      cached.cache_rows = 125;
      cached.host_rows = host_rows;
      const CacheCounts counts = expect_no_bit_changed(config, cached, RowOptimizerKind::adam, 400);
      EXPECT_EQ(counts.lines, std::max<std::int64_t>(host_rows, 2));
      EXPECT_GT(counts.misses, 1000);
      EXPECT_GT(counts.prefetched, 100);
      const RowOptimizer adam{.kind = RowOptimizerKind::adam};
      const std::int64_t row_bytes =
          stored_floats({.dim = 6, .state_width = adam.state_width(6), .dtype = dtype}) * 4;
      EXPECT_EQ(counts.bytes_in, (counts.misses + counts.prefetched) * row_bytes);
      EXPECT_GT(counts.bytes_out, 100'000);
      EXPECT_GT(counts.hits, host_rows == 400 ? 1000 : -1);
    }
  }
}

TEST(RowCache, HoldsTheRowsOfAStepUntilItEndsAndRefusesMore) {
  TableConfig config{"item", 1000, 4};
  config.cache_rows = 100;
  TableSet tables({config}, {}, 1);
  train_lookup(tables[0], range(0, 60));
  try {
    train_lookup(tables[0], range(50, 110));
    FAIL() << "110 rows in a cache of 100";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("tables.item: a step reads 110 rows"),
                                    HasSubstr("room for 100"), HasSubstr("device_memory")));
  }
  tables.end_step();
  train_lookup(tables[0], range(50, 110));
}

// Lookups without updates would otherwise fill the cache with rows that may not leave.
TEST(RowCache, ReleasesTheRowsOfStepsThatUpdateNothing) {
  TableConfig config{"item", 1000, 4};
  config.cache_rows = 10;
  TableSet tables({config}, {}, 1);
  for (std::int64_t step = 0; step < 100; ++step) {
    train_lookup(tables[0], range(10 * step, 10 * step + 10));
    tables.end_step();
  }
  EXPECT_EQ(tables.rows_alive(), 1000);
}

TEST(RowCache, EvaluatesMoreRowsThanItHolds) {
  TableConfig config{"item", 1000, 4};
  EmbeddingTable plain(config, {}, 1);
  config.cache_rows = 10;
  TableSet tables({config}, {}, 1);
  const auto gradients = random_values(40, 1);
  for (std::int64_t step = 0; step < 50; ++step) {
    apply_gradients(tables[0], range(10 * step, 10 * step + 10), gradients.data(), 0.1);
    apply_gradients(plain, range(10 * step, 10 * step + 10), gradients.data(), 0.1);
    tables.end_step();
  }
  EXPECT_EQ(eval_lookup(tables[0], range(-2, 1002)), eval_lookup(plain, range(-2, 1002)));
}

TEST(RowCache, LetsTheLeastUsedRowLeave) {
  RowDirectory rows(1000);
  RowCache cache(rows, 4);
  std::vector<std::int64_t> slots(6);
  rows.create_slots(range(0, 6), slots.data());
  cache.add(slots, RowCache::kBelow);
  const auto use = [&](const std::vector<std::int64_t>& some) {
    bring(cache, some);
    cache.end_step();
  };
  use({slots[0], slots[1], slots[2], slots[3]});
  for (int step = 0; step < 3; ++step) use({slots[0], slots[1], slots[3]});
  use({slots[2]});  // the last that was used, and least often
  use({slots[4]});
  EXPECT_EQ(cache.line_of(slots[2]), RowCache::kBelow);
  // Uses of the past fade while another row is used 200 times.
  for (int step = 0; step < 200; ++step) use({slots[4]});
  for (int step = 0; step < 3; ++step) use({slots[2]});
  use({slots[5]});
  EXPECT_GE(cache.line_of(slots[2]), 0) << "three uses of now outweigh four of the past";
}

TEST(RowCache, PrefetchesNoMoreThanThereIsRoomFor) {
  RowDirectory rows(1000);
  RowCache cache(rows, 100);
  std::vector<std::int64_t> slots(200);
  rows.create_slots(range(0, 200), slots.data());
  cache.add(slots, RowCache::kBelow);
  EXPECT_EQ(bring(cache, std::span(slots).first(80)), 80u);
  RowCache::Found next;
  cache.pin_next(std::span(slots).subspan(60, 140), 60, next);
  cache.count(next);
  ASSERT_EQ(next.missing.size(), 120u);
  EXPECT_EQ(next.missing.front(), 80);
  EXPECT_EQ(cache.bring_next(std::span(slots).subspan(80, 120)).moves.size(), 20u);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_GE(cache.line_of(slots[i]), 0);
  cache.end_step();
  EXPECT_EQ(bring(cache, std::span(slots).subspan(60, 40)), 0u) << "they have come";
  EXPECT_EQ(cache.hits(), 40);
}

TEST(RowCacheThatGrows, HasRoomForTheLargestStep) {
  const PlacedTable table{.name = "item",
                          .shape = {.rows = 100'000, .dim = 4, .state_width = 1, .key = 7, .bound = 1},
                          .optimizer = {},
                          .tiers = {.cache = {.lines = 8, .grows = true}}};
  const std::unique_ptr<Placement> expected = host_rows(std::span(&table, 1)),
                                   tiers = tiered_rows(std::span(&table, 1), host_context());
  for (const std::int64_t n : {5, 2000, 3, 2001}) {
    const TableIds ids{.ids = tensor(range(0, n)), .host_ids = {}};
    const Tensor gradients = Tensor::from<float>({n, 4}, random_values(static_cast<std::size_t>(4 * n), 3));
    std::vector<std::vector<float>> rows;
    for (Placement* const of : {expected.get(), tiers.get()}) {
      const std::vector<Handles> selected = of->select(std::span(&ids, 1), RowAccess::train);
      of->update(selected, std::span(&gradients, 1), {.learning_rate = 0.1});
      Tensor found = Tensor::empty({n, 4}, DType::f32);
      of->gather(selected, std::span(&found, 1));
      rows.emplace_back(found.data<float>(), found.data<float>() + found.size());
      of->end_step();
    }
    EXPECT_EQ(rows[0], rows[1]) << n;
  }
  EXPECT_EQ(tiers->figures(0).cache->lines, 2000 + 2000 / 8) << "the room of 2000 rows does for 2001";
}

}  // namespace
}  // namespace hstu
