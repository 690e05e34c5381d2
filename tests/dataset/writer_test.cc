#include "hstu/dataset/writer.h"

#include <algorithm>
#include <tuple>

#include <gtest/gtest.h>

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "hstu/base/random.h"
#include "hstu/base/threads.h"
#include "hstu/dataset/time_split.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

struct Event {
  std::int64_t user, time, item, action, context;
};

EventTable table_of(const std::vector<Event>& events) {
  EventTable table;
  table.context.resize(1);
  for (const Event& event : events) {
    table.user.append(std::span(&event.user, 1));
    table.time.append(std::span(&event.time, 1));
    table.item.append(std::span(&event.item, 1));
    table.action.push_back(static_cast<std::uint8_t>(event.action));
    table.context[0].append(std::span(&event.context, 1));
  }
  return table;
}

Manifest description() {
  Manifest manifest;
  manifest.name = "test";
  manifest.actions = {{"good", 1}, {"bad", 2}};
  manifest.label = "good";
  manifest.pools = {"good"};
  manifest.context = {"device"};
  return manifest;
}

template <typename T>
std::vector<T> read_column(const Path& file) {
  const NpyColumn<T> column(file);
  return {column.values().begin(), column.values().end()};
}

// Many users with few distinct times, so that order within ties matters.
std::vector<Event> random_events(std::int64_t count) {
  RandomStream random{.key = 7};
  std::vector<Event> events;
  for (std::int64_t i = 0; i < count; ++i) {
    events.push_back({.user = static_cast<std::int64_t>(random.below(200)) * 10,
                      .time = static_cast<std::int64_t>(random.below(50)),
                      .item = i,  // names the event
                      .action = static_cast<std::int64_t>(random.below(4)),
                      .context = static_cast<std::int64_t>(random.below(300))});
  }
  return events;
}

TEST(DatasetWriter, OrdersUnsortedEventsByUserAndTimeAndKeepsTheLogsOrderInTies) {
  std::vector<Event> events = random_events(5000);
  const Path folder = temporary_folder();
  write_dataset(folder, description(), table_of(events), {});

  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.user, a.time) < std::tie(b.user, b.time);
  });
  const auto ids = read_column<std::int64_t>(folder / kUserIdsFile);
  const auto offsets = read_column<std::int64_t>(folder / kUserOffsetsFile);
  const auto items = read_column<std::uint32_t>(folder / kItemFile);
  const auto times = read_column<std::uint32_t>(folder / kTimestampFile);
  const auto actions = read_column<std::uint8_t>(folder / kActionFile);
  const auto devices = read_column<std::uint16_t>(folder / context_file("device"));
  ASSERT_EQ(items.size(), events.size());
  ASSERT_EQ(offsets.size(), ids.size() + 1);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  EXPECT_EQ(offsets.back(), 5000);
  for (std::size_t u = 0; u < ids.size(); ++u) {
    for (auto p = static_cast<std::size_t>(offsets[u]); p < static_cast<std::size_t>(offsets[u + 1]); ++p) {
      ASSERT_EQ(events[p].user, ids[u]);
      ASSERT_EQ(events[p].item, items[p]);
      ASSERT_EQ(events[p].time, times[p]);
      ASSERT_EQ(events[p].action, actions[p]);
      ASSERT_EQ(events[p].context, devices[p]);
    }
  }
}

TEST(DatasetWriter, WritesTheSameBytesFromSortedInputAndWithAnyNumberOfThreads) {
  std::vector<Event> events = random_events(3000);
  const Path folder = temporary_folder();
  const auto id_of = [&](const char* name, int count) {
    std::filesystem::create_directories(folder / name);
    const int before = threads();
    set_threads(count);
    const std::string id = write_dataset(folder / name, description(), table_of(events), {}).id;
    set_threads(before);
    return id;
  };
  const std::string one = id_of("one", 1);
  EXPECT_EQ(id_of("four", 4), one);
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.user, a.time) < std::tie(b.user, b.time);
  });
  EXPECT_EQ(id_of("sorted", 1), one);
  events[0].time += 1;
  EXPECT_NE(id_of("altered", 1), one);
}

TEST(DatasetWriter, KeepsAUserWithOneEvent) {
  const Path folder = temporary_folder();
  const Manifest manifest =
      write_dataset(folder, description(), table_of({{9, 5, 1, 1, 0}, {3, 6, 1, 1, 0}}), {});
  EXPECT_EQ(manifest.counts.users, 2);
  EXPECT_EQ(read_column<std::int64_t>(folder / kUserIdsFile), (std::vector<std::int64_t>{3, 9}));
  EXPECT_EQ(read_column<std::int64_t>(folder / kUserOffsetsFile), (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(DatasetWriter, CountsRankableEventsAndPositives) {
  const Path folder = temporary_folder();
  const Manifest manifest = write_dataset(
      folder, description(),
      table_of({{1, 5, 4, kRankableBit | 1, 0}, {1, 7, 4, 1, 0}, {1, 6, 8, kRankableBit | 2, 0}}), {});
  EXPECT_EQ(manifest.counts,
            (EventCounts{.events = 3, .users = 1, .items = 2, .rankable = 2, .positives = 1}));
  EXPECT_EQ(manifest.time, (TimeRange{.min = 5, .max = 7}));
  EXPECT_EQ(read_manifest(folder), manifest);
}

TEST(DatasetWriter, DescribesEveryColumnInTheManifest) {
  const Path folder = temporary_folder();
  const Manifest manifest =
      write_dataset(folder, description(), table_of({{9, 5, 30, 1, 0}, {3, 6, 10, 2, 7}}), {});
  const std::vector<std::uint32_t> items{10, 30};
  EXPECT_EQ(manifest.columns.at(kItemFile), (ColumnInfo{.type = "<u4",
                                                        .count = 2,
                                                        .bytes = 136,
                                                        .checksum = checksum(std::as_bytes(std::span(items))),
                                                        .min = 10,
                                                        .max = 30}));
  EXPECT_EQ(manifest.columns.at(kUserIdsFile).max, 9);
  EXPECT_EQ(manifest.columns.at(context_file("device")).min, 0);
}

TEST(DatasetWriter, WidensItemsAndTimesBeyond32Bits) {
  const Path folder = temporary_folder();
  const std::int64_t large = std::int64_t{1} << 40;
  const Manifest manifest = write_dataset(folder, description(), table_of({{1, -5, large, 1, 0}}), {});
  EXPECT_EQ(manifest.columns.at(kItemFile).type, "<i8");
  EXPECT_EQ(read_column<std::int64_t>(folder / kItemFile), std::vector<std::int64_t>{large});
  EXPECT_EQ(read_column<std::int64_t>(folder / kTimestampFile), std::vector<std::int64_t>{-5});
}

TEST(DatasetWriter, WritesAttributesIndexedByItem) {
  const Path folder = temporary_folder();
  const std::vector<ItemAttribute> attributes = {{.name = "artist_id", .values = {0, 7, 0, 9}}};
  const Manifest manifest = write_dataset(folder, description(), table_of({{1, 5, 3, 1, 0}}), attributes);
  EXPECT_EQ(manifest.attributes, std::vector<std::string>{"artist_id"});
  EXPECT_EQ(read_column<std::uint32_t>(folder / attribute_file("artist_id")),
            (std::vector<std::uint32_t>{0, 7, 0, 9}));
}

TEST(TimeSplit, ReproducesTheBoundariesOfYambda) {
  const TimeSplit split = split_boundaries(26'000'000, SplitRule{});
  EXPECT_EQ(
      split,
      (TimeSplit{
          .train_start = -8'200, .train_end = 25'911'800, .test_start = 25'913'600, .test_end = 26'000'000}));
}

TEST(TimeSplit, KeepsTrainEventsAndCountsTestEventsOfTrainUsersOnly) {
  const SplitRule rule{.train_days = 1, .gap_minutes = 1, .test_days = 1};
  const TimeSplit split = split_boundaries(200'000, rule);
  const SplitEvents events =
      split_events(table_of({{1, split.train_start - 1, 0, 0, 0},  // before
                             {1, split.train_start, 1, 0, 0},
                             {1, split.train_end - 1, 2, 0, 0},
                             {1, split.train_end, 3, 0, 0},       // in the gap
                             {1, split.test_start - 1, 4, 0, 0},  // in the gap
                             {1, split.test_start, 5, 0, 0},
                             {2, split.test_start, 6, 0, 0},  // no train event
                             {1, split.test_end - 1, 7, 0, 0},
                             {1, split.test_end, 8, 0, 0}}),  // the last event: in neither
                   rule);
  EXPECT_EQ(events.boundaries, split);
  ASSERT_EQ(events.train.size(), 2);
  EXPECT_EQ(events.train.item[0], 1);
  EXPECT_EQ(events.train.item[1], 2);
  ASSERT_EQ(events.test.size(), 2);
  EXPECT_EQ(events.test.item[0], 5);
  EXPECT_EQ(events.test.item[1], 7);
}

TEST(TimeSplit, RefusesALogShorterThanWhatIsHeldOut) {
  EXPECT_THROW(split_events(table_of({{1, 0, 0, 0, 0}, {1, 100, 0, 0, 0}}), SplitRule{}), UsageError);
}

}  // namespace
}  // namespace hstu
