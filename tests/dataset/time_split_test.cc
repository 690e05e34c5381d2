#include "hstu/dataset/time_split.h"

#include <gtest/gtest.h>

#include "event_lists.h"

namespace hstu {
namespace {

TEST(TimeSplit, ReproducesTheBoundariesOfYambda) {
  const TimeSplit split = split_boundaries(26'000'000, SplitRule{});
  EXPECT_EQ(
      split,
      (TimeSplit{
          .train_start = -8'200, .train_end = 25'911'800, .test_start = 25'913'600, .test_end = 26'000'000}));
}

TEST(TimeSplitter, KeepsTrainEventsAndTestEventsOfTrainUsersOnly) {
  const SplitRule rule{.train_days = 1, .gap_minutes = 1, .test_days = 1};
  const TimeSplit split = split_boundaries(200'000, rule);
  const std::vector<Event> events = {{1, split.train_start - 1, 0, 0, 0},  // before
                                     {1, split.train_start, 1, 0, 0},
                                     {1, split.train_end - 1, 2, 0, 0},
                                     {1, split.train_end, 3, 0, 0},       // in the gap
                                     {1, split.test_start - 1, 4, 0, 0},  // in the gap
                                     {1, split.test_start, 5, kRankableBit | 1, 0},
                                     {1, split.test_end - 1, 7, kRankableBit, 0},
                                     {1, split.test_end, 8, 0, 0},    // the last event: in neither
                                     {2, split.test_start, 6, 0, 0},  // no train event
                                     {3, split.train_start, 9, 0, 0},
                                     {3, split.test_start, 7, 0, 0}};
  for (const std::size_t cut : {events.size(), std::size_t{1}}) {  // users may span tables
    EventList train, test;
    TimeSplitter splitter(split, train, test);
    for (std::size_t i = 0; i < events.size(); i += cut) {
      const auto begin = events.begin() + static_cast<std::ptrdiff_t>(i);
      splitter.append(table_of({begin, begin + static_cast<std::ptrdiff_t>(cut)}));
    }
    EXPECT_EQ(train.events, (std::vector<Event>{events[1], events[2], events[9]}));
    EXPECT_EQ(test.events, (std::vector<Event>{events[5], events[6], events[10]}));
  }
}

}  // namespace
}  // namespace hstu
