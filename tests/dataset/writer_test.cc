#include "hstu/dataset/writer.h"

#include <algorithm>
#include <tuple>

#include <gtest/gtest.h>

#include "event_lists.h"
#include "hstu/base/checksum.h"
#include "hstu/base/error.h"
#include "hstu/base/npy.h"
#include "temporary_folder.h"
#include "write_dataset.h"

namespace hstu {
namespace {

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

TEST(DatasetWriter, OrdersUnsortedEventsByUserAndTimeAndKeepsTheLogsOrderInTies) {
  std::vector<Event> events = random_events(5000);
  const Path folder = temporary_folder();
  write_dataset(folder, description(), table_of(events));

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

TEST(DatasetWriter, WritesTheSameBytesHoweverTheEventsAreCut) {
  std::vector<Event> events = random_events(3000);
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.user, a.time) < std::tie(b.user, b.time);
  });
  const Path folder = temporary_folder();
  const auto manifest_of = [&](const char* name, std::size_t cut) {
    std::filesystem::create_directories(folder / name);
    DatasetWriter writer(folder / name, description());
    for (std::size_t first = 0; first < events.size(); first += cut) {
      const auto begin = events.begin() + static_cast<std::ptrdiff_t>(first);
      writer.append(
          table_of({begin, begin + static_cast<std::ptrdiff_t>(std::min(cut, events.size() - first))}));
    }
    return manifest_to_json(writer.finish({}));
  };
  const std::string whole = manifest_of("whole", events.size());
  EXPECT_EQ(manifest_of("singly", 1), whole);
  EXPECT_EQ(manifest_of("cut", 7), whole);
  events[0].item += 1;
  EXPECT_NE(manifest_of("altered", events.size()), whole);
}

TEST(UserBorders, CountPositionsBeyond32Bits) {
  const Path folder = temporary_folder();
  const std::int64_t first = (std::int64_t{1} << 32) - 1;
  IntegerColumn users;
  users.append(std::vector<std::int64_t>{4, 4, 9});
  UserBorders borders(folder, first);
  borders.append(users);
  std::map<std::string, ColumnInfo> columns;
  borders.close(columns);
  EXPECT_EQ(read_column<std::int64_t>(folder / kUserOffsetsFile),
            (std::vector<std::int64_t>{first, first + 2, first + 3}));
  EXPECT_EQ(columns.at(kUserOffsetsFile).max, first + 3);
}

TEST(UserBorders, RefuseUsersThatDescend) {
  IntegerColumn users;
  users.append(std::vector<std::int64_t>{4, 3});
  UserBorders borders(temporary_folder());
  EXPECT_THROW(borders.append(users), InternalError);
}

TEST(DatasetWriter, KeepsAUserWithOneEvent) {
  const Path folder = temporary_folder();
  const Manifest manifest =
      write_dataset(folder, description(), table_of({{9, 5, 1, 1, 0}, {3, 6, 1, 1, 0}}));
  EXPECT_EQ(manifest.counts.users, 2);
  EXPECT_EQ(read_column<std::int64_t>(folder / kUserIdsFile), (std::vector<std::int64_t>{3, 9}));
  EXPECT_EQ(read_column<std::int64_t>(folder / kUserOffsetsFile), (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(DatasetWriter, CountsRankableEventsAndPositives) {
  const Path folder = temporary_folder();
  const Manifest manifest = write_dataset(
      folder, description(),
      table_of({{1, 5, 4, kRankableBit | 1, 0}, {1, 7, 4, 1, 0}, {1, 6, 8, kRankableBit | 2, 0}}));
  EXPECT_EQ(manifest.counts,
            (EventCounts{.events = 3, .users = 1, .items = 2, .rankable = 2, .positives = 1}));
  EXPECT_EQ(manifest.time, (TimeRange{.min = 5, .max = 7}));
  EXPECT_EQ(read_manifest(folder), manifest);
}

TEST(DatasetWriter, DescribesEveryColumnInTheManifest) {
  const Path folder = temporary_folder();
  const Manifest manifest =
      write_dataset(folder, description(), table_of({{9, 5, 30, 1, 0}, {3, 6, 10, 2, 7}}));
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
  const Manifest manifest = write_dataset(folder, description(), table_of({{1, -5, large, 1, 0}}));
  EXPECT_EQ(manifest.columns.at(kItemFile).type, "<i8");
  EXPECT_EQ(read_column<std::int64_t>(folder / kItemFile), std::vector<std::int64_t>{large});
  EXPECT_EQ(read_column<std::int64_t>(folder / kTimestampFile), std::vector<std::int64_t>{-5});
}

TEST(DatasetWriter, WritesAttributesIndexedByItem) {
  const Path folder = temporary_folder();
  const Manifest manifest = write_dataset(folder, description(), table_of({{1, 5, 3, 1, 0}}),
                                          {item_attribute("artist_id", {0, 7, 0, 9})});
  EXPECT_EQ(manifest.attributes, std::vector<std::string>{"artist_id"});
  EXPECT_EQ(read_column<std::uint32_t>(folder / attribute_file("artist_id")),
            (std::vector<std::uint32_t>{0, 7, 0, 9}));
}

}  // namespace
}  // namespace hstu
