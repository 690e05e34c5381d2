#include "hstu/events/event_stages.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/events/tie_order.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Event {
  std::int64_t user = 0, time = 0, item = 0;
  std::uint8_t action = 1;
  auto key() const { return std::tuple(user, time, item, action); }
  bool operator==(const Event& other) const { return key() == other.key(); }
  bool operator<(const Event& other) const { return key() < other.key(); }
};
using Log = std::vector<Event>;

EventTable table_of(const Log& log, std::size_t begin, std::size_t end) {
  EventTable table;
  for (std::size_t e = begin; e < end; ++e) {
    table.user.append(std::span(&log[e].user, 1));
    table.time.append(std::span(&log[e].time, 1));
    table.item.append(std::span(&log[e].item, 1));
    table.action.push_back(log[e].action);
  }
  return table;
}

class Collector : public EventSink {
 public:
  void append(EventTable events) override {
    for (std::int64_t r = 0; r < events.size(); ++r)
      log.push_back(
          {events.user[r], events.time[r], events.item[r], events.action[static_cast<std::size_t>(r)]});
  }
  Log log;
};

struct Result {
  Log log;
  FilterReport report;
};

constexpr std::int64_t kMemory = std::int64_t{1} << 20;

// `rows` events in a table.
Result run_stages(const Schema& schema, const Log& log, std::size_t rows = 3, std::int64_t memory = kMemory) {
  Collector collector;
  EventStages stages(schema, temporary_folder(), memory, collector);
  for (std::size_t begin = 0; begin < log.size(); begin += rows)
    stages.first().append(table_of(log, begin, std::min(begin + rows, log.size())));
  stages.finish();
  return {collector.log, stages.report().value_or(FilterReport())};
}

Schema with(const EventFilters& filters) {
  Schema schema;
  schema.filters = filters;
  return schema;
}

std::vector<std::int64_t> items(const Log& log) {
  std::vector<std::int64_t> list;
  for (const Event& event : log) list.push_back(event.item);
  return list;
}

// In order of (user, time), with ties and repeated items.
Log random_log(std::uint64_t seed, std::uint64_t users, std::uint64_t items, std::uint64_t longest) {
  RandomStream random{.key = seed, .index = 0};
  Log log;
  for (std::uint64_t user = 0; user < users; ++user) {
    std::int64_t time = 0;
    for (std::uint64_t e = 1 + random.below(longest); e > 0; --e) {
      time += static_cast<std::int64_t>(random.below(3));
      const std::uint64_t a = random.below(items), b = random.below(items);
      log.push_back({static_cast<std::int64_t>(user), time, static_cast<std::int64_t>(std::min(a, b)),
                     static_cast<std::uint8_t>(1 + random.below(2))});
    }
  }
  return log;
}

TEST(EventStages, WithoutRulesPassOnWhatTheyGet) {
  const Log log = random_log(1, 5, 5, 5);
  EXPECT_EQ(run_stages(Schema(), log).log, log);
}

TEST(Duplicates, KeepTheFirstOrTheLastEventOfAnItem) {
  const Log log = {{1, 1, 5}, {1, 2, 6}, {1, 3, 5}, {1, 4, 5}, {2, 1, 5}, {3, 1, 7}, {3, 2, 7}};
  const Result first = run_stages(with({.duplicates = Duplicates::kFirst}), log);
  EXPECT_EQ(first.log, (Log{{1, 1, 5}, {1, 2, 6}, {2, 1, 5}, {3, 1, 7}}));
  EXPECT_EQ(first.report.duplicates, 3);
  EXPECT_EQ(run_stages(with({.duplicates = Duplicates::kLast}), log).log,
            (Log{{1, 2, 6}, {1, 4, 5}, {2, 1, 5}, {3, 2, 7}}));
  const Result counted = run_stages(with({.duplicates = Duplicates::kCount}), log);
  EXPECT_EQ(counted.log, log);
  EXPECT_EQ(counted.report.duplicates, 3);
}

TEST(Duplicates, OfEventsAreEqualInEverything) {
  const Log log = {{1, 1, 5, 1}, {1, 1, 5, 2}, {1, 1, 5, 1}, {1, 2, 5, 1}, {2, 2, 5, 1}};
  EXPECT_EQ(run_stages(with({.duplicates = Duplicates::kFirst, .duplicates_of = SameEvent::kEvent}), log).log,
            (Log{{1, 1, 5, 1}, {1, 1, 5, 2}, {1, 2, 5, 1}, {2, 2, 5, 1}}));
}

TEST(Duplicates, EqualAPlainReferenceForAnyDivisionIntoTables) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Log log = random_log(seed, 12, 6, 30);
    Log expected;
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    for (const Event& event : log)
      if (seen.emplace(event.user, event.item).second) expected.push_back(event);
    for (const std::size_t rows : {1u, 2u, 7u, 1000u})
      EXPECT_EQ(run_stages(with({.duplicates = Duplicates::kFirst}), log, rows).log, expected) << seed;
  }
}

TEST(Duplicates, AUserThatDoesNotFitIntoMemoryIsNamed) {
  const Log log(1000, Event{.user = 77, .time = 1, .item = 2});
  try {
    run_stages(with({.duplicates = Duplicates::kLast}), log, 10, 2000);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("user 77: its events take more than 2.0 KiB"));
  }
}

// Removes one after another what has too few events, until nothing has.
Log plain_core(Log log, std::size_t least) {
  for (bool changed = true; changed;) {
    std::map<std::int64_t, std::size_t> users, of_items;
    for (const Event& event : log) {
      ++users[event.user];
      ++of_items[event.item];
    }
    const auto leaves = [&](const Event& event) {
      return users[event.user] < least || of_items[event.item] < least;
    };
    changed = std::erase_if(log, leaves) > 0;
  }
  return log;
}

TEST(Core, IteratedEqualsAPlainReference) {
  int partial = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Log log = random_log(seed, 60, 40, 12);
    const Log expected = plain_core(log, 4);
    if (expected.empty()) {
      EXPECT_THROW(run_stages(with({.core = 4}), log), UsageError);
      continue;
    }
    const Result result = run_stages(with({.core = 4}), log, 5);
    EXPECT_EQ(result.log, expected) << seed;
    EXPECT_EQ(result.report.core.events, static_cast<std::int64_t>(log.size() - expected.size()));
    partial += result.report.core_rounds > 2 ? 1 : 0;
  }
  EXPECT_GT(partial, 10);  // cases in which one round is not enough
}

TEST(Core, OnceComparesTheCountsOfTheWholeLog) {
  // Item 9 has one event; without it, user 2 has one too, and stays.
  const Log log = {{1, 1, 5}, {1, 2, 6}, {2, 1, 5}, {2, 2, 9}, {3, 1, 6}};
  const Result once = run_stages(with({.core = 2, .core_once = true}), log);
  EXPECT_EQ(once.log, (Log{{1, 1, 5}, {1, 2, 6}, {2, 1, 5}}));
  EXPECT_EQ(once.report.core, (LeftOut{.users = 1, .items = 1, .events = 2}));
  EXPECT_EQ(once.report.core_rounds, 1);
  const Result then = run_stages(with({.core = 2, .core_once = true, .shortest_user = 2}), log);
  EXPECT_EQ(then.log, (Log{{1, 1, 5}, {1, 2, 6}}));
  EXPECT_EQ(then.report.shortest, (LeftOut{.users = 1, .items = 0, .events = 1}));
  EXPECT_THROW(run_stages(with({.core = 2}), log), UsageError);
}

TEST(Core, IsCountedWithoutUsersThatAreTooLong) {
  // Without user 3, item 6 has one event.
  const Log log = {{1, 1, 5}, {1, 2, 5}, {1, 3, 6}, {3, 1, 6}, {3, 2, 6}, {3, 3, 6}, {3, 4, 6}};
  const Result result = run_stages(with({.longest_user = 3, .core = 2}), log);
  EXPECT_EQ(items(result.log), (std::vector<std::int64_t>{5, 5}));
  EXPECT_EQ(result.report.longest, (LeftOut{.users = 1, .items = 0, .events = 4}));
}

TEST(Core, TheTableOfItemsHoldsAnyIdsAndHasALimit) {
  Log log;
  for (std::int64_t i = 0; i < 5000; ++i) log.push_back({1, i, i * 1'000'000'007'000, 1});
  const Log twice = [&] {
    Log all = log;
    for (Event event : log) {
      event.user = 2;
      all.push_back(event);
    }
    return all;
  }();
  EXPECT_EQ(run_stages(with({.core = 2}), twice, 1000).log, twice);
  try {
    run_stages(with({.core = 2}), twice, 1000, 100'000);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("increase --memory"));
  }
}

TEST(Limits, ShortAndLongUsersLeave) {
  const Log log = {{1, 1, 5}, {2, 1, 5}, {2, 2, 6}, {3, 1, 5}, {3, 2, 5}, {3, 3, 5}};
  EXPECT_EQ(run_stages(with({.shortest_user = 2}), log).log, Log(log.begin() + 1, log.end()));
  EXPECT_EQ(run_stages(with({.longest_user = 2}), log).log, Log(log.begin(), log.begin() + 3));
}

TEST(Ties, AreShuffledBySeedAndNothingElseIs) {
  Log log;
  for (std::int64_t user = 0; user < 200; ++user)
    for (std::int64_t e = 0; e < 12; ++e) log.push_back({user, e / 4, user * 100 + e});
  Schema schema;
  schema.ties = TieRule::kShuffle;
  schema.ties_seed = 3;
  const Log shuffled = run_stages(schema, log).log;
  for (const std::size_t rows : {1u, 5u, 10'000u})
    EXPECT_EQ(run_stages(schema, log, rows).log, shuffled) << rows;
  EXPECT_NE(shuffled, log);
  Log sorted = shuffled;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, log);
  std::map<std::int64_t, int> firsts;  // of the four places
  for (std::size_t e = 0; e < log.size(); ++e) {
    EXPECT_EQ(shuffled[e].user, log[e].user);
    EXPECT_EQ(shuffled[e].time, log[e].time);
    if (e % 4 == 0) ++firsts[shuffled[e].item % 4];
  }
  for (const auto& [place, count] : firsts) EXPECT_NEAR(count, 150, 50) << place;
  schema.ties_seed = 4;
  EXPECT_NE(run_stages(schema, log).log, shuffled);
}

TEST(Ties, ManyAreShuffledInPartsThatDoNotDependOnTheTables) {
  Log log;
  for (std::int64_t e = 0; e < 100; ++e) log.push_back({1, 5, e});
  log.push_back({1, 6, 100});
  const auto shuffled = [&](std::size_t rows) {
    Collector collector;
    TieShuffle stage(1, collector, 16);
    for (std::size_t begin = 0; begin < log.size(); begin += rows)
      stage.append(table_of(log, begin, std::min(begin + rows, log.size())));
    stage.finish();
    return items(collector.log);
  };
  const std::vector<std::int64_t> expected = shuffled(1);
  for (const std::size_t rows : {3u, 16u, 17u, 50u, 101u}) EXPECT_EQ(shuffled(rows), expected) << rows;
  for (std::size_t part = 0; part < 6; ++part) {
    const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(16 * part);
    EXPECT_FALSE(std::is_sorted(begin, begin + 16)) << part;
    EXPECT_EQ(*std::min_element(begin, begin + 16), static_cast<std::int64_t>(16 * part));
  }
}

TEST(Order, GivesEveryUserTimesFromZero) {
  Schema schema;
  schema.times = Times::kOrder;
  schema.filters.duplicates = Duplicates::kFirst;
  const Log log = {{1, 0, 5}, {1, 0, 5}, {1, 0, 4}, {4, 0, 9}, {4, 0, 8}, {4, 0, 7}};
  for (const std::size_t rows : {1u, 2u, 100u}) {
    EXPECT_EQ(run_stages(schema, log, rows).log,
              (Log{{1, 0, 5}, {1, 1, 4}, {4, 0, 9}, {4, 1, 8}, {4, 2, 7}}));
  }
}

}  // namespace
}  // namespace hstu
