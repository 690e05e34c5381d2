#include "hstu/dataset/tie_counter.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

using Integers = std::vector<std::int64_t>;

EventTable events(const Integers& users, const Integers& times, const Integers& nanoseconds = {}) {
  EventTable table;
  table.user.append(users);
  table.time.append(times);
  table.nanoseconds.append(nanoseconds);
  table.item.resize(table.user.size());
  table.action.resize(users.size());
  return table;
}

TEST(TieCounter, CountsNeighboursOfAUserAndTiedLastPairs) {
  TieCounter counter;
  // User 1 ends with a tie, user 2 with none, user 3 with three tied events; 2 and 3 meet at the same time.
  counter.add(events({1, 1, 1, 2, 2, 2, 3, 3, 3}, {5, 6, 6, 1, 1, 9, 9, 9, 9}));
  EXPECT_EQ(counter.ties(), (Ties{.neighbours = 4, .last_pairs = 2, .seed = {}}));
}

TEST(TieCounter, DoesNotDependOnTheDivisionIntoTables) {
  TieCounter counter;
  for (const std::int64_t time : {3, 7, 7}) counter.add(events({1}, {time}));
  counter.add(events({2}, {7}));
  EXPECT_EQ(counter.ties(), (Ties{.neighbours = 1, .last_pairs = 1, .seed = {}}));
}

TEST(TieCounter, ComparesNanoseconds) {
  TieCounter counter;
  counter.add(events({1, 1, 1}, {5, 5, 5}, {1, 2, 2}));
  counter.add(events({1}, {5}));  // at its beginning
  EXPECT_EQ(counter.ties(), (Ties{.neighbours = 1, .last_pairs = 0, .seed = {}}));
}

}  // namespace
}  // namespace hstu
