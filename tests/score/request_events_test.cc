// The events of requests before their time, and as a dataset in memory.
#include "hstu/score/request_events.h"

#include <gtest/gtest.h>

#include "score/score_fixture.h"

namespace hstu::testing {
namespace {

using Ids = std::vector<std::int64_t>;

Ids list(std::span<const std::int64_t> values) {
  return {values.begin(), values.end()};
}

TEST(CountedEvents, InTheOrderOfTimeAreReadInPlace) {
  const RequestEvents events{
      .item = {5, 6, 7, 8}, .time = {10, 20, 20, 30}, .action = {1, 2, 3, 1}, .context = {{}, {1, 2, 3, 4}}};
  CountedEvents counted;
  counted.read(events, 30, 2);  // the event at this time does not count
  EXPECT_EQ(list(counted.columns().item), (Ids{5, 6, 7}));
  EXPECT_EQ(list(counted.columns().time), (Ids{10, 20, 20}));
  EXPECT_EQ(counted.columns().item.data(), events.item.data());
  EXPECT_EQ(counted.columns().action.size(), 3);
  EXPECT_TRUE(counted.columns().context[0].empty());
  EXPECT_EQ(list(counted.columns().context[1]), (Ids{1, 2, 3}));
  counted.read(events, 31, 2);
  EXPECT_EQ(counted.size(), 4);
  counted.read(events, 10, 2);
  EXPECT_EQ(counted.size(), 0);
  counted.read(RequestEvents(), 10, 2);
  EXPECT_EQ(counted.size(), 0);
}

TEST(CountedEvents, InAnotherOrderAreSortedAndKeepTheOrderOfEqualTimes) {
  const RequestEvents events{
      .item = {5, 6, 7, 8}, .time = {20, 30, 10, 20}, .action = {1, 2, 3, 4}, .context = {{9, 8, 7, 6}}};
  CountedEvents counted;
  counted.read(events, 30, 1);
  EXPECT_EQ(list(counted.columns().item), (Ids{7, 5, 8}));
  EXPECT_EQ(list(counted.columns().time), (Ids{10, 20, 20}));
  EXPECT_EQ(list(counted.columns().context[0]), (Ids{7, 9, 6}));
  EXPECT_EQ(counted.columns().action[2], 4);
}

class RequestEventsOfDatasets : public Score {};

TEST_F(RequestEventsOfDatasets, AreTheLastOnesOfTheUser) {
  use_ranking(200, {"positive"});
  train_and_export();
  const Dataset dataset(folder_ / "dataset");
  const std::int64_t user = id_of_user(0);
  const UserEvents all = dataset.events_of(0);
  Ids items, times;
  all.each([&](std::int64_t p) { items.push_back(dataset.item()[p]), times.push_back(dataset.time()[p]); });
  CountedEvents counted;
  for (const std::int64_t most : {std::int64_t{0}, std::int64_t{2}, all.size(), all.size() + 9}) {
    counted.read(dataset, user, times.back() + 1, most, dataset.manifest().context.size());
    const auto n = static_cast<std::ptrdiff_t>(std::min(most, all.size()));
    EXPECT_EQ(list(counted.columns().item), Ids(items.end() - n, items.end()));
    EXPECT_EQ(list(counted.columns().time), Ids(times.end() - n, times.end()));
    for (const auto& column : counted.columns().context) EXPECT_EQ(std::ssize(column), n);
  }
  EventMemory memory(dataset);
  memory.add(counted.columns(), counted.size());
  const UserEvents added = memory.add(counted.columns(), 1);
  memory.show();
  ASSERT_EQ(added.size(), all.size() - 1);
  EXPECT_EQ(memory.dataset().item()[added.latest()], items.back());
  EXPECT_EQ(memory.dataset().time()[added.last_range().begin], times[1]);
}

}  // namespace
}  // namespace hstu::testing
