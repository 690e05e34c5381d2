#include "hstu/dataset/event_sorter.h"

#include <algorithm>
#include <tuple>

#include <gtest/gtest.h>

#include "event_lists.h"
#include "hstu/dataset/user_order.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

void sort_stably(std::vector<Event>& events) {
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.user, a.time) < std::tie(b.user, b.time);
  });
}

// The events sorted within `memory`, in tables of `cut` events. `spilled`: whether runs were written.
EventList sorted(const std::vector<Event>& events, std::size_t cut, std::int64_t memory, bool& spilled) {
  const Path folder = temporary_folder() / "spill";
  EventSorter sorter(folder, memory);
  for (std::size_t first = 0; first < events.size(); first += cut) {
    const auto begin = events.begin() + static_cast<std::ptrdiff_t>(first);
    const auto size = static_cast<std::ptrdiff_t>(std::min(cut, events.size() - first));
    sorter.append(ordered(table_of({begin, begin + size})));
  }
  spilled = std::filesystem::exists(folder);
  EventList result;
  std::int64_t told = 0;
  sorter.merge_into(result, [&](std::int64_t done) { told = done; });
  EXPECT_EQ(told, static_cast<std::int64_t>(events.size()));

  return result;
}

TEST(UserOrder, SortsStablyWhateverTheRangeOfTheKeys) {
  // Ids and times that fit into 64 bits together with the row, and ones that do not.
  for (const std::int64_t scale : {std::int64_t{1}, std::int64_t{1} << 40}) {
    std::vector<Event> events = random_events(3'000);
    for (Event& event : events) {
      event.user *= scale;
      event.time = (event.time - 20) * scale;
    }
    EXPECT_FALSE(is_ordered(table_of(events)));
    EventList result;
    result.append(ordered(table_of(events)));
    sort_stably(events);
    EXPECT_EQ(result.events, events);
    EXPECT_TRUE(is_ordered(table_of(events)));
  }
}

TEST(UserOrder, KeepsOneEventAndNone) {
  EXPECT_EQ(ordered(table_of({})).size(), 0);
  EventList result;
  result.append(ordered(table_of({{5, 6, 7, 1, 2}})));
  EXPECT_EQ(result.events, (std::vector<Event>{{5, 6, 7, 1, 2}}));
}

TEST(EventSorter, GivesTheSameOrderInMemoryAndThroughAnyNumberOfRunsAndLevels) {
  std::vector<Event> events = random_events(6'000);
  std::vector<Event> expected = events;
  sort_stably(expected);
  bool spilled = false;
  EXPECT_EQ(sorted(events, 100, 1 << 30, spilled).events, expected);
  EXPECT_FALSE(spilled);
  EXPECT_EQ(sorted(events, 100, 20'000, spilled).events, expected);  // a few runs
  EXPECT_TRUE(spilled);
  EXPECT_EQ(sorted(events, 17, 1, spilled).events, expected);  // a run a table, merged two by two
}

TEST(EventSorter, KeepsWideValuesAndWidthsThatDifferBetweenTables) {
  std::vector<Event> events = random_events(1'000);
  for (std::size_t i = 0; i < events.size(); i += 3) {
    events[i].item += std::int64_t{1} << 40;
    events[i].time -= 1'000;
    events[i].user += std::int64_t{1} << 62;
  }
  std::vector<Event> expected = events;
  sort_stably(expected);
  bool spilled = false;
  EXPECT_EQ(sorted(events, 10, 500, spilled).events, expected);
}

// Events of one user and a few seconds, in some tables to the nanosecond; the context is the full time.
std::vector<EventTable> fine_tables() {
  std::vector<EventTable> tables;
  std::int64_t item = 0;
  for (Event event : random_events(2'000)) {
    if (item % 50 == 0) tables.emplace_back().context.resize(1);
    EventTable& table = tables.back();
    const bool fine = tables.size() % 3 != 0;
    const std::int64_t nanoseconds = fine ? 1'000'000 * event.context : 0, user = event.user % 50;
    const std::int64_t full = event.time * 1'000'000'000 + nanoseconds;
    table.user.append(std::span(&user, 1));
    table.time.append(std::span(&event.time, 1));
    if (fine) table.nanoseconds.append(std::span(&nanoseconds, 1));
    table.item.append(std::span(&item, 1));
    table.action.push_back(1);
    table.context[0].append(std::span(&full, 1));
    ++item;
  }
  return tables;
}

TEST(EventSorter, OrdersWithinASecondInMemoryAndThroughRuns) {
  for (const std::int64_t memory : {1 << 30, 20'000, 1}) {
    EventSorter sorter(temporary_folder() / "spill", memory);
    for (const EventTable& table : fine_tables()) {
      EXPECT_FALSE(is_ordered(table));
      sorter.append(ordered(table));
      EXPECT_TRUE(is_ordered(ordered(table)));
    }
    EventList result;
    sorter.merge_into(result, [](std::int64_t) {});
    const auto place = [](const Event& e) { return std::tuple(e.user, e.context, e.item); };
    ASSERT_EQ(result.events.size(), 2'000u);
    EXPECT_TRUE(std::ranges::is_sorted(result.events, {}, place)) << memory;
  }
}

TEST(EventSorter, RemovesItsFolder) {
  const Path folder = temporary_folder() / "spill";
  {
    EventSorter sorter(folder, 1);
    sorter.append(table_of({{5, 6, 7, 1, 2}}));
    EXPECT_TRUE(std::filesystem::exists(folder));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

}  // namespace
}  // namespace hstu
