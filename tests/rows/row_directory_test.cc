#include "hstu/rows/row_directory.h"

#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "embedding/support.h"

namespace hstu {
namespace {

using namespace testing_embedding;

// Lookups, new rows, removals and updates in any order, beside a map of the rows and a set of those that
// changed since each of the last checkpoints.
class DirectoryWalk {
 public:
  DirectoryWalk(std::int64_t ids, std::uint64_t seed) : bound_(ids), random_{.key = seed}, directory_(ids) {
    directory_.take_created();
  }

  void step() {
    switch (below(6)) {
      case 0:
      case 1:
        create();
        break;
      case 2:
        remove();
        break;
      case 3:
        update();
        break;
      case 4:
        visit();
        break;
      default:
        if (below(8) == 0) changed_[directory_.begin_changes()];
    }
    compare();
  }
  Ids slots() const {
    Ids all;
    for (const auto& [id, slot] : slots_) all.insert(all.end(), {id, slot});
    return all;
  }
  std::int64_t reused() const { return reused_; }

 private:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(n)));
  }
  // Few ids, some with the same low 32 bits, both ends of the range, and outside of it.
  std::int64_t draw_id() {
    const std::int64_t kind = below(20);
    if (kind == 0) return bound_ + below(2);
    if (kind == 1) return -1 - below(2);
    if (kind % 3 == 0) return bound_ - 1 - below(2000);
    return kind % 3 == 1 ? below(2000) : bound_ - (std::int64_t{1} << 32) + below(2000);
  }
  bool is_id(std::int64_t id) const { return id >= 0 && id < bound_; }
  void change(std::int64_t id) {
    for (auto& [since, ids] : changed_) ids.insert(id);
  }

  void create() {
    Ids ids, slots, expected_new;
    for (std::int64_t i = below(1500); i >= 0; --i) ids.push_back(draw_id());  // some of them twice
    slots.assign(ids.size(), 0);
    const Ids created = directory_.create_slots(ids, slots.data());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!is_id(ids[i])) {
        ASSERT_EQ(slots[i], kNullRow);
      } else if (slots_.contains(ids[i])) {
        ASSERT_EQ(slots[i], slots_.at(ids[i])) << "id " << ids[i];
      } else {
        // The slot that was left last, or the next one.
        std::int64_t expected = count_;
        if (free_.empty()) {
          ++count_;
        } else {
          expected = free_.back();
          free_.pop_back();
          ++reused_;
        }
        ASSERT_EQ(slots[i], expected);
        ASSERT_EQ(directory_.row(expected).seen, HostRow::kNew);
        ASSERT_EQ(directory_.row(expected).score, 0);
        slots_[ids[i]] = expected;
        expected_new.push_back(expected);
        change(ids[i]);
      }
    }
    EXPECT_EQ(created, expected_new);
    created_.insert(created_.end(), created.begin(), created.end());
  }
  void remove() {
    EXPECT_EQ(directory_.take_created(), created_);
    created_.clear();
    std::vector<RowDirectory::Place> places;
    for (const auto& [id, slot] : slots_)
      if (below(4) == 0) places.push_back({id, slot});
    directory_.remove(places);
    for (const auto& place : places) {
      EXPECT_FALSE(directory_.lives(place.slot));
      slots_.erase(place.id);
      free_.push_back(place.slot);
      for (auto& [since, ids] : changed_) ids.erase(place.id);
    }
  }
  void update() {
    const std::uint32_t number = directory_.next_update();
    for (const auto& [id, slot] : slots_) {
      if (below(10) != 0) continue;
      EXPECT_TRUE(directory_.mark_updated(slot, number));
      EXPECT_FALSE(directory_.mark_updated(slot, number)) << "the same update had the row before";
      change(id);
    }
  }
  void visit() {
    for (const auto& [id, slot] : slots_) {
      if (below(10) != 0) continue;
      directory_.row(slot).score = id;
      directory_.touch(directory_.row(slot));
      change(id);
    }
  }

  void compare() {
    ASSERT_EQ(directory_.rows(), std::ssize(slots_));
    ASSERT_EQ(directory_.slots(), count_);
    ASSERT_EQ(directory_.follows_changes(), !changed_.empty());
    for (const auto& [id, slot] : slots_) {
      ASSERT_TRUE(directory_.lives(slot));
      ASSERT_EQ(directory_.row(slot).id, id);
    }
    Ids ids, slots;
    for (int i = 0; i < 700; ++i) ids.push_back(draw_id());
    slots.assign(ids.size(), 0);
    directory_.find_slots(ids, slots.data());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(slots[i], !is_id(ids[i])            ? kNullRow
                          : slots_.contains(ids[i]) ? slots_.at(ids[i])
                                                    : kAbsentRow)
          << "id " << ids[i];
    }
    std::set<std::int64_t> all;
    for (const auto& [id, slot] : slots_) all.insert(id);
    expect_places(directory_.places_by_id(), all);
    for (const auto& [since, changed] : changed_) expect_places(directory_.changed_by_id(since), changed);
  }
  void expect_places(const std::vector<RowDirectory::Place>& places,
                     const std::set<std::int64_t>& ids) const {
    ASSERT_EQ(places.size(), ids.size());
    std::size_t i = 0;
    for (const std::int64_t id : ids) {
      ASSERT_EQ(places[i].id, id);
      ASSERT_EQ(places[i++].slot, slots_.at(id));
    }
  }

  std::int64_t bound_;
  RandomStream random_;
  RowDirectory directory_;
  std::map<std::int64_t, std::int64_t> slots_;              // by id
  std::map<std::int64_t, std::set<std::int64_t>> changed_;  // by the number of begin_changes()
  Ids free_, created_;
  std::int64_t count_ = 0, reused_ = 0;
};

// Of ids of 32 bits the index compares tags alone.
TEST(RowDirectory, AgreesWithAMapForAnyNumberOfThreads) {
  for (const int bits : {32, 40}) {
    std::vector<Ids> found;
    for (const int n : {1, 3}) {
      const Threads threads(n);
      DirectoryWalk walk(std::int64_t{1} << bits, 5);
      for (int step = 0; step < 120 && !testing::Test::HasFailure(); ++step) walk.step();
      EXPECT_GT(walk.reused(), 1000);
      found.push_back(walk.slots());
    }
    EXPECT_EQ(found[0], found[1]);
  }
}

TEST(RowDirectory, ARowThatComesBackHasNothingOfItsFormerLife) {
  RowDirectory directory(10);
  std::int64_t slot = 0;
  const std::int64_t id = 3;
  directory.create_slots(std::span(&id, 1), &slot);
  directory.row(slot).score = 9;
  directory.row(slot).seen = 4;
  directory.remove(std::vector<RowDirectory::Place>{{id, slot}});
  EXPECT_EQ(directory.find(id), kAbsentRow);
  EXPECT_EQ(directory.rows(), 0);
  directory.create_slots(std::span(&id, 1), &slot);
  EXPECT_EQ(directory.row(slot).score, 0);
  EXPECT_EQ(directory.row(slot).seen, HostRow::kNew);
}

TEST(RowDirectory, RecordsNewRowsFromTheFirstTimeItIsAskedForThem) {
  RowDirectory directory(10);
  Ids slots(2);
  directory.create_slots(Ids{1, 2}, slots.data());
  EXPECT_EQ(directory.take_created(), Ids());
  directory.create_slots(Ids{2, 3}, slots.data());
  EXPECT_EQ(directory.take_created(), Ids{2});
  EXPECT_EQ(directory.take_created(), Ids());
}

}  // namespace
}  // namespace hstu
