// Positions beyond 2^32: a dataset whose first users' events are holes in sparse files.
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>

#include "batching/small_data.h"
#include "hstu/batching/anchors.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/batching/schedule.h"
#include "hstu/dataset/pool_counts.h"

namespace hstu {
namespace {

constexpr std::int64_t kFar = (std::int64_t{1} << 32) + 1000;  // events of the users in the holes
constexpr std::int64_t kHoleUsers = 1000;
constexpr std::int64_t kTail = 5'000'000;  // events of the last user, who has more than the others
constexpr std::int64_t kKnown = 600;       // of these the last ones differ from zero
constexpr std::int64_t kMinHistory = kTail - kKnown;

// Elements of the given shape: zeros that take no space on disk, except `tail` at the end.
template <typename T>
ColumnInfo write_sparse(const Path& path, const std::vector<std::int64_t>& shape,
                        const std::vector<T>& tail) {
  const std::string header = npy_header(npy_type<T>(), shape);
  const std::int64_t count =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  write_file(path, header);
  const auto bytes = static_cast<std::int64_t>(header.size()) + count * std::int64_t{sizeof(T)};
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(bytes));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto tail_bytes = static_cast<std::streamsize>(tail.size() * sizeof(T));
  file.seekp(bytes - tail_bytes);
  file.write(reinterpret_cast<const char*>(tail.data()), tail_bytes);
  return {.type = npy_type<T>(), .count = count, .bytes = bytes, .checksum = "-", .min = {}, .max = {}};
}

struct KnownEvents {
  std::vector<std::uint32_t> item;
  std::vector<std::uint8_t> time, action;
};

KnownEvents known_events() {
  KnownEvents events;
  for (std::int64_t i = 0; i < kKnown; ++i) {
    events.item.push_back(static_cast<std::uint32_t>(1000 + i));
    events.time.push_back(static_cast<std::uint8_t>(i / 5));
    events.action.push_back(i % 3 == 0 ? 0x81 : i % 3 == 1 ? 0x84 : 2);
  }
  return events;
}

// Rows of the running counts that the known events change, above a count that needs more than 32 bits.
std::vector<std::int64_t> known_counts(std::int64_t events, const std::vector<std::uint8_t>& known) {
  const std::int64_t first = events - kKnown, block = first / kPoolBlock;
  std::vector<std::uint8_t> from_border(static_cast<std::size_t>(first - block * kPoolBlock));
  from_border.insert(from_border.end(), known.begin(), known.end());
  std::vector<std::int64_t> counts = small::count_pools(from_border, small::description().actions);
  for (std::int64_t& count : counts) count += std::int64_t{1} << 33;
  return counts;
}

void write_far_dataset(const Path& folder, const KnownEvents& known) {
  std::filesystem::create_directories(folder);
  const std::int64_t events = kFar + kTail;
  std::vector<std::int64_t> users(kHoleUsers + 1), offsets;
  std::iota(users.begin(), users.end(), 10);
  for (std::int64_t u = 0; u < kHoleUsers; ++u) offsets.push_back(u * (kFar / kHoleUsers));
  offsets.push_back(kFar);
  offsets.push_back(events);
  Manifest manifest = small::description();
  manifest.context.clear();
  manifest.counts = {.events = events, .users = kHoleUsers + 1, .items = 4, .rankable = 400, .positives = 2};
  auto& columns = manifest.columns;
  columns[kUserIdsFile] = write_sparse(folder / kUserIdsFile, {kHoleUsers + 1}, users);
  columns[kUserOffsetsFile] = write_sparse(folder / kUserOffsetsFile, {kHoleUsers + 2}, offsets);
  columns[kItemFile] = write_sparse(folder / kItemFile, {events}, known.item);
  columns[kTimestampFile] = write_sparse(folder / kTimestampFile, {events}, known.time);
  columns[kActionFile] = write_sparse(folder / kActionFile, {events}, known.action);
  columns[kPoolCountsFile] = write_sparse(folder / kPoolCountsFile, {events / kPoolBlock + 1, 3},
                                          known_counts(events, known.action));
  manifest.id = dataset_id(columns);
  write_file(folder / kManifestFile, manifest_to_json(manifest));
}

TEST(LargePositions, IndexCountsGatherAndBatchesReachBeyond32Bits) {
  const Path folder = small::fresh_folder("sparse");
  const KnownEvents known = known_events();
  try {
    write_far_dataset(folder, known);
  } catch (const std::filesystem::filesystem_error& error) {
    std::filesystem::remove_all(folder);
    GTEST_SKIP() << "this file system has no room for sparse files: " << error.what();
  }
  {
    const Dataset dataset(folder);
    DataOptions options;
    options.history_length = 30;
    options.min_history = kMinHistory;
    options.window_seconds = 10;
    const Anchors anchors = find_anchors(dataset, options, {.windows = 2});
    const std::int64_t first = kFar + kMinHistory;  // position of the first known event
    EXPECT_EQ(anchors.count, 2 * kKnown / 3);
    EXPECT_EQ(anchors.time_max, (kKnown - 1) / 5);
    ASSERT_EQ(anchors.training.windows(), 12);
    EXPECT_EQ(anchors.training.window(0).front(), first);
    EXPECT_EQ(anchors.evaluation.window(11).back(), first + kKnown - 2);

    BatchSchedule schedule(anchors.training, {.batch_size = 8}, {0, 9, 3});
    const auto job = schedule.next();
    const Samples batch = SampleBuilder(dataset, options).build(job->positions);
    ASSERT_EQ(batch.count, 8);
    for (std::size_t b = 0; b < 8; ++b) {
      // The last ten events of each of the three alternating pools: the last thirty.
      const std::int64_t anchor = batch.position[b];
      EXPECT_GT(anchor, std::int64_t{1} << 32);
      EXPECT_EQ(batch.user[b], 10 + kHoleUsers);
      ASSERT_EQ(batch.history_offsets[b + 1] - batch.history_offsets[b], 30);
      for (std::int64_t i = 0; i < 30; ++i) {
        const auto token = static_cast<std::size_t>(batch.history_offsets[b] + i);
        const auto source = static_cast<std::size_t>(anchor - 30 + i - first);
        EXPECT_EQ(batch.items[static_cast<std::size_t>(batch.history_item[token])], known.item[source]);
        EXPECT_EQ(batch.history_time[token], known.time[source]);
        EXPECT_EQ(batch.history_action[token], known.action[source] & ~kRankableBit);
      }
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hstu
