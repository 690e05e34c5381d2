// Histories of events in memory beside those that a gatherer selects.
#include "hstu/batching/request_history.h"

#include <vector>

#include <gtest/gtest.h>

#include "batching/small_data.h"
#include "hstu/base/random.h"

namespace hstu {
namespace {

struct ListedEvents {
  std::vector<std::int64_t> item, time, context;
  std::vector<std::uint8_t> action;

  EventColumns view() const {
    return {.item = item, .time = time, .action = action, .context = {context, {}}};
  }
};

// `others`: one of so many events has an action of no pool; 0: none.
ListedEvents listed_events(RandomStream& random, std::uint64_t count, std::uint64_t others) {
  ListedEvents events;
  for (std::uint64_t i = 0; i < count; ++i) {
    events.item.push_back(static_cast<std::int64_t>(random.below(50)));
    events.time.push_back(static_cast<std::int64_t>(i));
    events.context.push_back(static_cast<std::int64_t>(random.below(9)));
    const bool other = others > 0 && random.below(others) == 0;
    events.action.push_back(static_cast<std::uint8_t>(other ? 8 : 1 + random.below(7)));
  }
  return events;
}

TEST(RequestHistory, HasTheEventsOfAGatherer) {
  RequestHistory history;  // one object for all, as for the requests of a server
  std::int64_t in_place = 0, copied = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    RandomStream random{.key = seed, .index = 0};
    DataOptions options;
    options.history_length = 1 + static_cast<std::int64_t>(random.below(200));
    options.scan_limit = options.history_length + static_cast<std::int64_t>(random.below(100));
    options.strategy = seed % 3 == 0 ? HistoryStrategy::interleaved : HistoryStrategy::last_n;
    const HistoryRule rule = resolve_history(options, small::description());
    const ListedEvents events = listed_events(random, random.below(400), random.below(3) * 5);
    HistoryGatherer gatherer(events.action, {}, rule);
    const auto places = gatherer.gather(PositionRange{0, std::ssize(events.item)});
    history.select(events.view(), rule);
    const EventColumns& found = history.events();
    ASSERT_EQ(found.item.size(), places.size()) << seed;
    ASSERT_EQ(found.context.size(), 2);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto p = static_cast<std::size_t>(places[i]);
      ASSERT_EQ(found.item[i], events.item[p]) << seed;
      ASSERT_EQ(found.time[i], events.time[p]) << seed;
      ASSERT_EQ(found.action[i], events.action[p]) << seed;
      ASSERT_EQ(found.context[0][i], events.context[p]) << seed;
    }
    if (places.empty()) continue;
    const bool is_in_place = found.item.data() == events.item.data() + places.front();
    (is_in_place ? in_place : copied) += 1;
    // What was selected is selected whole: a dataset of it has the same history.
    HistoryGatherer again(found.action, {}, rule);
    EXPECT_EQ(again.gather(PositionRange{0, std::ssize(found.item)}).size(), places.size()) << seed;
  }
  EXPECT_GT(in_place, 50);
  EXPECT_GT(copied, 50);
}

}  // namespace
}  // namespace hstu
