// The keeper alone, over rows in host memory, beside TableModel; limits_test.cc walks whole tables.
#include "hstu/embedding/row_limiter.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/rows/host_row_store.h"
#include "sanitizers.h"
#include "support/table_model.h"

namespace hstu {
namespace {

using namespace testing_embedding;

constexpr std::int64_t kKeeperIds = 2000;
constexpr RowShape kKeeperShape{.rows = kKeeperIds, .dim = 1};

class KeeperWalk {
 public:
  KeeperWalk(const RowLimits& limits, std::uint64_t seed)
      : limits_(limits), random_{.key = seed}, model_(kKeeperIds, limits) {
    begin_again();
  }

  void step() {
    std::map<std::int64_t, TableModel::Seen> seen;
    // Often more than one block of work of a thread.
    for (std::int64_t i = below(below(4) == 0 ? 1500 : 60); i > 0; --i) {
      TableModel::Seen& id = seen[below(16) == 0 ? below(kKeeperIds + 40) - 20 : below(kKeeperIds)];
      id.occurrences = 1 + below(3);
      id.value = below(90) - 40;
    }
    Ids ids, slots;
    for (const auto& [id, unused] : seen) ids.push_back(id);
    shuffle(ids);
    const bool creates = limiter_->creates_at_lookup();
    slots.assign(ids.size(), 0);
    if (creates) {
      store_->create_slots(ids, slots.data());
      Ids forgotten{below(kKeeperIds), below(kKeeperIds)}, unused(2);  // of a forward pass without its step
      store_->create_slots(forgotten, unused.data());
    } else {
      store_->find_slots(ids, slots.data());
    }
    time_ += below(8) == 0 ? below(400) : below(4);
    const std::int64_t time = time_ - (below(4) == 0 ? below(40) : below(3));  // of samples in any order
    limiter_->begin_end(time);
    const std::size_t first = ids.empty() ? 0 : static_cast<std::size_t>(below(std::ssize(ids) + 1));
    visit(seen, std::span(ids).first(first), std::span(slots).first(first));
    visit(seen, std::span(ids).subspan(first), std::span(slots).subspan(first));
    limiter_->expire();
    shrink();
    model_.step(seen, time, 0);
    compare();
    if (below(12) == 0) restore();
  }
  const RowCounts& counts() const { return model_.counts(); }
  Ids slots_by_id() const {
    Ids slots;
    for (const auto& place : store_->places_by_id()) slots.push_back(place.slot);
    return slots;
  }

 private:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(n)));
  }
  void shuffle(Ids& ids) {
    for (std::size_t i = ids.size(); i > 1; --i)
      std::swap(ids[i - 1], ids[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
  }
  void begin_again() {
    directory_ = std::make_shared<RowDirectory>(kKeeperShape.rows);
    store_ = std::make_unique<HostRowStore>(kKeeperShape, directory_);
    limiter_ = std::make_unique<RowLimiter>(*store_, *directory_, limits_);
  }

  // With the slots of the lookup, or without.
  void visit(const std::map<std::int64_t, TableModel::Seen>& seen, std::span<const std::int64_t> ids,
             std::span<const std::int64_t> slots) {
    Ids occurrences, values;
    for (const std::int64_t id : ids) {
      occurrences.push_back(seen.at(id).occurrences);
      if (limits_.evict == Evict::custom) values.push_back(seen.at(id).value);
    }
    limiter_->visit(ids, occurrences, below(2) == 0 ? slots : std::span<const std::int64_t>(), values);
  }

  // Asks for more rows than leave if they are in order, as ranks do.
  void shrink() {
    const std::int64_t excess = limits_.capacity == 0 ? 0 : store_->rows() - limits_.capacity;
    if (excess <= 0) return;
    const bool ascending = below(2) == 0;
    const auto leaving = limiter_->first_to_leave(excess + (ascending ? below(20) : 0), ascending);
    if (ascending) {
      EXPECT_TRUE(std::is_sorted(leaving.begin(), leaving.end()));
    }
    limiter_->drop(std::min(excess, std::ssize(leaving)));
  }

  // Through what a checkpoint has into a new keeper.
  void restore() {
    const RowLimiter::State state = limiter_->state();
    const WaitingIds::List waiting = limiter_->waiting().by_id();
    Ids ids, seen, scores;
    for (const auto& place : store_->places_by_id()) {
      ids.push_back(place.id);
      seen.push_back(directory_->row(place.slot).seen);
      scores.push_back(directory_->row(place.slot).score);
    }
    begin_again();
    Ids slots(ids.size());
    store_->create_slots(ids, slots.data());
    limiter_->restore(state, slots, seen, scores, waiting.ids, waiting.counts);
    compare();
  }

  void compare() {
    const auto places = store_->places_by_id();
    ASSERT_EQ(places.size(), model_.rows().size());
    const bool same_scores = limits_.evict == Evict::lfu || limits_.evict == Evict::step ||
                             limits_.evict == Evict::custom;  // the others are written in another form
    std::size_t i = 0;
    for (const auto& [id, row] : model_.rows()) {
      const HostRow& found = directory_->row(places[i].slot);
      ASSERT_EQ(places[i++].id, id);
      ASSERT_EQ(found.seen, row.seen) << "id " << id;
      if (same_scores) {
        ASSERT_EQ(found.score, row.score) << "id " << id;
      }
    }
    const WaitingIds::List waiting = limiter_->waiting().by_id();
    std::map<std::int64_t, std::int64_t> waits;
    for (std::size_t w = 0; w < waiting.ids.size(); ++w) waits[waiting.ids[w]] = waiting.counts[w];
    ASSERT_EQ(waits, model_.waiting());
    const auto all = [](const RowCounts& c) {
      return Ids{c.inserted, c.admitted, c.refused, c.evicted, c.expired, c.hits, c.misses};
    };
    ASSERT_EQ(all(limiter_->counts()), all(model_.counts()));
  }

  RowLimits limits_;
  RandomStream random_;
  TableModel model_;
  std::shared_ptr<RowDirectory> directory_;
  std::unique_ptr<HostRowStore> store_;
  std::unique_ptr<RowLimiter> limiter_;
  std::int64_t time_ = 1000;
};

TEST(RowLimiter, KeepsTheRowsOfTheContractForAnyNumberOfThreads) {
  constexpr int kSteps = kSanitized ? 100 : 150;
  const auto limits = [](Evict evict, std::int64_t capacity, std::int64_t admit_after, std::int64_t ttl) {
    return RowLimits{
        .capacity = capacity, .evict = evict, .half_life = 40, .admit_after = admit_after, .ttl = ttl};
  };
  for (const RowLimits& l :
       {limits(Evict::never, 500, 0, 0), limits(Evict::lru, 500, 0, 0), limits(Evict::lfu, 20, 0, 0),
        limits(Evict::step, 500, 2, 0), limits(Evict::lfu, 500, 3, 0), limits(Evict::lru_lfu, 500, 0, 700),
        limits(Evict::custom, 500, 0, 0), limits(Evict::custom, 0, 3, 700), limits(Evict::never, 20, 2, 700),
        limits(Evict::lru, 0, 0, 300)}) {
    SCOPED_TRACE(eviction_of(l));
    std::vector<Ids> slots;
    for (const int n : {1, 3}) {
      const Threads threads(n);
      KeeperWalk walk(l, 11);
      for (int step = 0; step < kSteps && !testing::Test::HasFatalFailure(); ++step) walk.step();
      // The walk went through what it is about.
      EXPECT_GT(walk.counts().hits, 0);
      EXPECT_EQ(walk.counts().evicted > 0, l.capacity > 0 && l.evict != Evict::never);
      EXPECT_EQ(walk.counts().refused > 0, l.capacity > 0 && l.evict == Evict::never);
      EXPECT_EQ(walk.counts().admitted > 0, l.admit_after > 0);
      EXPECT_EQ(walk.counts().expired > 0, l.ttl > 0);
      slots.push_back(walk.slots_by_id());
    }
    EXPECT_EQ(slots[0], slots[1]);
  }
}

TEST(RowLimiter, RefusesVisitsWithoutTheValuesOfACustomScore) {
  const auto directory = std::make_shared<RowDirectory>(kKeeperShape.rows);
  HostRowStore store(kKeeperShape, directory);
  RowLimiter keeper(store, *directory, {.capacity = 5, .evict = Evict::custom});
  keeper.begin_end(0);
  EXPECT_THROW(keeper.visit(Ids{1}, Ids{1}), InternalError);
}

}  // namespace
}  // namespace hstu
