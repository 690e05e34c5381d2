#include "hstu/dataset/anchor_index.h"

#include <thread>

#include <gtest/gtest.h>

#include "batching/small_data.h"
#include "hstu/base/file_lock.h"
#include "hstu/base/threads.h"
#include "hstu/dataset/anchor_builder.h"

namespace hstu {
namespace {

using small::Data;
using small::expect_error;
using Positions = std::vector<std::int64_t>;

constexpr AnchorRule kRule{
    .min_history = 2, .window_seconds = 50, .users = {.train_fraction = 0.7, .salt = 5}};

std::vector<Positions> windows_of(const AnchorList& list) {
  std::vector<Positions> windows;
  for (std::int64_t w = 0; w < list.windows(); ++w) {
    windows.emplace_back(list.window(w).begin(), list.window(w).end());
  }
  return windows;
}

void expect_equal(const AnchorIndex& a, const AnchorIndex& b) {
  EXPECT_EQ(a.rule, b.rule);
  EXPECT_EQ(a.time_min, b.time_min);
  EXPECT_EQ(a.time_max, b.time_max);
  EXPECT_EQ(windows_of(a.training_users), windows_of(b.training_users));
  EXPECT_EQ(windows_of(a.held_out_users), windows_of(b.held_out_users));
}

Path stored(const Data& data, const AnchorRule& rule = kRule) {
  return data.folder / kAnchorFolder / rule.name();
}

TEST(AnchorIndex, NamesSayTheRule) {
  EXPECT_EQ((AnchorRule{.min_history = 64, .window_seconds = 86400, .users = {}}.name()), "m64_w86400");
  EXPECT_EQ(kRule.name(), "m2_w50_u0.7_s5");
}

// Without the events, only the index can provide the answer.
TEST(AnchorIndex, OpensWithoutALookAtTheEvents) {
  const Data data = small::write(small::random_events(1));
  const AnchorIndex built = open_anchor_index(Dataset(data.folder), kRule);
  EXPECT_GT(built.training_users.size(), 10);
  EXPECT_GT(built.held_out_users.size(), 10);
  write_npy(data.folder / kActionFile, std::vector<std::uint8_t>(data.events.size()));
  const Path times = data.folder / kTimestampFile;
  const auto bytes = std::filesystem::file_size(times);
  std::filesystem::resize_file(times, 128);
  std::filesystem::resize_file(times, bytes);
  const Dataset blank(data.folder);
  expect_equal(open_anchor_index(blank, kRule), built);
  EXPECT_EQ(open_anchor_index(blank, kRule).count(), built.count());
}

TEST(AnchorIndex, DoesNotDependOnBlocksOrThreads) {
  const Data data = small::write(small::random_events(2, {.users = 60}));
  const Dataset dataset(data.folder);
  const AnchorIndex expected = open_anchor_index(dataset, kRule);
  const int before = threads();
  for (const int count : {1, 3}) {
    set_threads(count);
    for (const std::int64_t block_events : {1, 20, 100'000}) {
      const AnchorBuilder builder(dataset, 0, kRule, std::nullopt, block_events);
      const AnchorCounts counts = builder.count();
      Positions training(static_cast<std::size_t>(counts.training_users.back()), -1);
      Positions held_out(static_cast<std::size_t>(counts.held_out_users.back()), -1);
      const auto put = [](Positions& list) {
        return [&list](std::int64_t offset, std::span<const std::int64_t> positions) {
          std::copy(positions.begin(), positions.end(), list.begin() + offset);
        };
      };
      builder.place(counts, put(training), put(held_out));
      EXPECT_EQ(windows_of(AnchorList(training, counts.training_users)), windows_of(expected.training_users));
      EXPECT_EQ(windows_of(AnchorList(held_out, counts.held_out_users)), windows_of(expected.held_out_users));
    }
  }
  set_threads(before);
}

TEST(AnchorIndex, UserHoldoutDividesWhatTheUndividedIndexHolds) {
  const Data data = small::write(small::random_events(3, {.users = 40}));
  const Dataset dataset(data.folder);
  const AnchorIndex whole = open_anchor_index(dataset, {.min_history = 2, .window_seconds = 50, .users = {}});
  const AnchorIndex divided = open_anchor_index(dataset, kRule);
  EXPECT_EQ(whole.held_out_users.size(), 0);
  ASSERT_EQ(whole.windows(), divided.windows());
  for (std::int64_t w = 0; w < whole.windows(); ++w) {
    const auto training = divided.training_users.window(w), held_out = divided.held_out_users.window(w);
    Positions merged;
    std::merge(training.begin(), training.end(), held_out.begin(), held_out.end(),
               std::back_inserter(merged));
    EXPECT_EQ(merged, windows_of(whole.training_users)[static_cast<std::size_t>(w)]);
    for (const std::int64_t p : training) EXPECT_LT(user_split_hash(data.at(p).user, 5), 0.7);
    for (const std::int64_t p : held_out) EXPECT_GE(user_split_hash(data.at(p).user, 5), 0.7);
  }
}

TEST(AnchorIndex, AUserOf27738EventsAndWindowsWithoutAnchors) {
  std::vector<small::Event> events;
  for (std::int64_t i = 0; i < 27'738; ++i) {
    // All of one user; none between seconds 1,000 and 9,000.
    events.push_back(
        {.user = 9, .time = i < 20'000 ? i / 20 : 9'000 + i / 20, .item = i % 20, .action = 0x81});
  }
  const Data data = small::write(events);
  const AnchorIndex index =
      open_anchor_index(Dataset(data.folder), {.min_history = 4086, .window_seconds = 1000, .users = {}});
  EXPECT_EQ(index.count(), 27'738 - 4086);
  EXPECT_EQ(index.time_min, 4086 / 20);
  EXPECT_EQ(index.time_max, 9'000 + 27'737 / 20);
  ASSERT_EQ(index.windows(), (index.time_max - index.time_min) / 1000 + 1);
  EXPECT_EQ(index.training_users.window(0).size(), 20'000u - 4086u);
  for (std::int64_t w = 1; w < index.windows() - 2; ++w) EXPECT_TRUE(index.training_users.window(w).empty());
  EXPECT_EQ(index.training_users.window(0).front(), 4086);
  EXPECT_EQ(index.training_users.window(index.windows() - 1).back(), 27'737);
}

TEST(AnchorIndex, TiesInTimeStandInTheOrderOfTheLog) {
  std::vector<small::Event> events;
  for (std::int64_t i = 0; i < 10; ++i) {
    events.push_back({.user = 1 + i % 2, .time = 100 + 10 * (i / 6), .item = i, .action = 0x81});
  }
  const Data data = small::write(events);
  // Positions 0 to 4 are of user 1; no window divides the ties at seconds 100 and 110.
  const AnchorIndex index =
      open_anchor_index(Dataset(data.folder), {.min_history = 1, .window_seconds = 10, .users = {}});
  EXPECT_EQ(windows_of(index.training_users), (std::vector<Positions>{{1, 2, 6, 7}, {3, 4, 8, 9}}));
}

TEST(AnchorIndex, TwoAtOnceBuildItOnce) {
  const Data data = small::write(small::random_events(4));
  const Dataset dataset(data.folder);
  std::vector<AnchorIndex> found(4);
  {
    std::vector<std::jthread> both;
    for (AnchorIndex& index : found) both.emplace_back([&] { index = open_anchor_index(dataset, kRule); });
  }
  for (const AnchorIndex& index : found) expect_equal(index, found[0]);
  EXPECT_GT(found[0].count(), 0);
  EXPECT_EQ(verify_anchor_indices(dataset), std::vector<std::string>{kRule.name()});
}

TEST(AnchorIndex, WaitsForTheProcessThatBuilds) {
  const Data data = small::write(small::random_events(4));
  const Dataset dataset(data.folder);
  std::filesystem::create_directories(data.folder / kAnchorFolder);
  auto lock = std::make_unique<FileLock>(data.folder / kAnchorFolder / ".lock");
  ASSERT_TRUE(lock->held());
  EXPECT_FALSE(FileLock(data.folder / kAnchorFolder / ".lock").held());
  std::jthread waiting([&] { open_anchor_index(dataset, kRule); });
  EXPECT_FALSE(std::filesystem::exists(stored(data)));
  lock.reset();
  waiting.join();
  EXPECT_TRUE(std::filesystem::exists(stored(data)));
}

TEST(AnchorIndex, AnInterruptedBuildIsNoIndex) {
  const Data data = small::write(small::random_events(4));
  const Dataset dataset(data.folder);
  const Path half = stored(data).string() + ".partial", other = data.folder / kAnchorFolder / "m7_w9.partial";
  for (const Path& path : {half, other}) {
    std::filesystem::create_directories(path);
    write_file(path / "training.npy", "half");
  }
  EXPECT_FALSE(read_anchor_index(dataset, kRule));
  EXPECT_TRUE(verify_anchor_indices(dataset).empty());
  EXPECT_GT(open_anchor_index(dataset, kRule).count(), 0);
  EXPECT_FALSE(std::filesystem::exists(half));
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST(AnchorIndex, WhereNothingCanBeStoredItIsBuiltInMemory) {
  const Data data = small::write(small::random_events(5));
  const AnchorIndex expected = open_anchor_index(Dataset(data.folder), kRule);
  std::filesystem::remove_all(data.folder / kAnchorFolder);
  write_file(data.folder / kAnchorFolder, "a file where the folder should be");
  testing::internal::CaptureStderr();
  const AnchorIndex found = open_anchor_index(Dataset(data.folder), kRule);
  const std::string notice = testing::internal::GetCapturedStderr();
  expect_equal(found, expected);
  EXPECT_NE(notice.find("built in memory"), std::string::npos) << notice;
  EXPECT_NE(notice.find("hstu prepare index"), std::string::npos) << notice;
}

TEST(AnchorIndex, OneThatDoesNotFitIsRefused) {
  const Data data = small::write(small::random_events(6));
  const Dataset dataset(data.folder);
  open_anchor_index(dataset, kRule);
  const Data other = small::write(small::random_events(7), "other");
  std::filesystem::copy(data.folder / kAnchorFolder, other.folder / kAnchorFolder,
                        std::filesystem::copy_options::recursive);
  expect_error<Error>([&] { open_anchor_index(Dataset(other.folder), kRule); },
                      {"manifest.json", "belongs to other events", "remove"});

  AnchorRule renamed = kRule;
  renamed.min_history = 3;
  std::filesystem::rename(stored(data), stored(data, renamed));
  expect_error<Error>([&] { open_anchor_index(dataset, renamed); }, {"m3_w50", "m2_w50", "renamed"});
  std::filesystem::rename(stored(data, renamed), stored(data));

  const std::string positions = read_file(stored(data) / "training.npy");
  std::string altered = positions;
  altered[200] ^= 1;
  write_file(stored(data) / "training.npy", altered);
  expect_error<Error>([&] { verify_anchor_indices(dataset); }, {"training.npy", "checksum", "remove"});
  write_file(stored(data) / "training.npy", positions.substr(0, positions.size() - 8));
  expect_error<Error>([&] { open_anchor_index(dataset, kRule); }, {"training.npy"});
  write_file(stored(data) / "manifest.json", "{}");
  expect_error<Error>([&] { open_anchor_index(dataset, kRule); }, {"manifest.json", "format", "remove"});
}

TEST(AnchorIndex, UsersWhoseEventsAreNotInOrderAreNamed) {
  std::vector<small::Event> events = small::random_events(8);
  const Data data = small::write(events);
  std::int64_t p = data.size() - 2;  // two events of one user at different times
  while (data.at(p).user != data.at(p + 1).user || data.at(p).time == data.at(p + 1).time) --p;
  std::vector<std::uint32_t> times;
  for (const small::Event& e : data.events) times.push_back(static_cast<std::uint32_t>(e.time));
  std::swap(times[static_cast<std::size_t>(p)], times[static_cast<std::size_t>(p) + 1]);
  write_npy(data.folder / kTimestampFile, times);
  AnchorRule every{.min_history = 0, .window_seconds = 50, .users = {}};
  expect_error<Error>(
      [&] { open_anchor_index(Dataset(data.folder), every); },
      {"timestamp.npy", fmt::format("user {}", data.at(p).user), fmt::format("position {}", p + 1)});
  EXPECT_FALSE(std::filesystem::exists(stored(data, every)));
}

}  // namespace
}  // namespace hstu
