#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/embedding/row_score.h"
#include "hstu/embedding/row_visits.h"
#include "support/table_walk.h"

namespace hstu {
namespace {

using testing_embedding::TableWalk;

struct WalkCase {
  Evict evict;
  std::int64_t capacity, admit_after, ttl;
};

class LimitedTable : public testing::TestWithParam<WalkCase> {};

// Walks with several seeds. Gives the counts of the last.
RowCounts walk_over_random_steps(const WalkCase& c, std::int64_t cache_rows, const Context& where,
                                 int steps) {
  const RowLimits limits{
      .capacity = c.capacity, .evict = c.evict, .half_life = 40, .admit_after = c.admit_after, .ttl = c.ttl};
  RowCounts counts;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    RandomStream random{.key = 1000 + seed};
    const auto draw = [&](std::int64_t bound) {
      return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
    };
    TableWalk walk(limits, 300, draw, cache_rows, where);
    for (int step = 0; step < steps; ++step)
      EXPECT_NO_THROW(walk.step()) << "seed " << seed << " step " << step;
    counts = walk.counts();
  }
  return counts;
}

TEST_P(LimitedTable, AgreesWithTheContractOverRandomSteps) {
  const WalkCase& c = GetParam();
  const RowCounts counts = walk_over_random_steps(c, 0, host_context(), 500);
  // The walk went through what it is about.
  EXPECT_GT(counts.hits, 0);
  EXPECT_EQ(counts.evicted > 0, c.capacity > 0 && c.evict != Evict::never);
  EXPECT_EQ(counts.refused > 0, c.capacity > 0 && c.evict == Evict::never);
  EXPECT_EQ(counts.admitted > 0, c.admit_after > 0);
  EXPECT_EQ(counts.expired > 0, c.ttl > 0);
}

// A step reads 70 rows at most, and the table has up to 300.
TEST_P(LimitedTable, AgreesWithTheContractBehindACacheOfOneStep) {
  walk_over_random_steps(GetParam(), 70, host_context(), 500);
}

TEST_P(LimitedTable, AgreesWithTheContractOnAGpu) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  walk_over_random_steps(GetParam(), 0, make_context(Device::cuda(0)), 40);
  walk_over_random_steps(GetParam(), 70, make_context(Device::cuda(0)), 40);
}

// The trap: an id that gets no row reads as zeros, and nobody is told.
TEST(LimitedTables, AnIdWithoutARowReadsItsInitialValueAndIsCounted) {
  const TableConfig unlimited{.name = "item", .rows = 40, .dim = 3};
  TableConfig full = unlimited, admitting = unlimited;
  full.limits = {.capacity = 2, .evict = Evict::never};
  admitting.limits = {.admit_after = 2};
  EmbeddingTable initial(unlimited, {}, 1);
  const std::vector<std::int64_t> ids{3, 5, 7, 9, 11};
  for (const TableConfig& config : {full, admitting}) {
    TableSet tables({config}, {}, 1);
    for (int step = 0; step < 2; ++step) {
      EXPECT_EQ(testing_embedding::train_lookup(tables[0], ids),
                testing_embedding::eval_lookup(initial, ids));
      if (step > 0) break;
      RowVisits visits(tables);
      visits.add(0, ids, std::vector<std::int64_t>(ids.size(), 1));
      visits.end_step(one_rank(), 0);
    }
    EXPECT_EQ(testing_embedding::eval_lookup(tables[0], ids), testing_embedding::eval_lookup(initial, ids));
    EXPECT_EQ(tables[0].counts().refused + tables[0].waiting().size(), config.limits.capacity == 2 ? 3 : 5);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, LimitedTable,
                         testing::Values(WalkCase{Evict::lru, 50, 0, 0}, WalkCase{Evict::lfu, 50, 0, 0},
                                         WalkCase{Evict::step, 50, 0, 0}, WalkCase{Evict::lru_lfu, 50, 0, 0},
                                         WalkCase{Evict::never, 50, 0, 0}, WalkCase{Evict::lru, 5, 0, 0},
                                         WalkCase{Evict::lfu, 5, 3, 0}, WalkCase{Evict::lru, 50, 3, 0},
                                         WalkCase{Evict::never, 50, 4, 0}, WalkCase{Evict::never, 0, 3, 0},
                                         WalkCase{Evict::never, 0, 0, 300}, WalkCase{Evict::lfu, 120, 2, 700},
                                         WalkCase{Evict::never, 120, 2, 700},
                                         WalkCase{Evict::lru_lfu, 50, 0, 500},
                                         WalkCase{Evict::custom, 50, 0, 0},
                                         WalkCase{Evict::custom, 120, 2, 700},
                                         WalkCase{Evict::custom, 5, 0, 0}));

}  // namespace
}  // namespace hstu
