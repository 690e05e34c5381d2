// Small datasets for tests, written by the dataset writer and opened again, with the same events in memory.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "hstu/dataset/dataset.h"
#include "hstu/dataset/pool_counts.h"
#include "write_dataset.h"

namespace hstu::small {

inline constexpr std::uint8_t kGood = 1, kLike = 2, kBad = 4;

struct Event {
  std::int64_t user = 0, time = 0, item = 0;
  std::uint8_t action = 0;  // with kRankableBit
  std::int64_t organic = 0;
};

struct Data {
  std::vector<Event> events;                // by (user, time), stable: positions as in the dataset
  std::vector<std::int64_t> artist, album;  // attributes
  Path folder;

  std::int64_t user_start(std::int64_t position) const {
    std::int64_t start = position;
    while (start > 0 && at(start - 1).user == at(position).user) --start;
    return start;
  }
  const Event& at(std::int64_t position) const { return events[static_cast<std::size_t>(position)]; }
  std::int64_t size() const { return static_cast<std::int64_t>(events.size()); }
  std::int64_t users() const {
    std::int64_t n = 0;
    for (std::int64_t p = 0; p < size(); ++p) n += user_start(p) == p ? 1 : 0;
    return n;
  }
};

inline Manifest description() {
  Manifest manifest;
  manifest.name = "small";
  manifest.actions = {{"good", kGood}, {"like", kLike}, {"bad", kBad}};
  manifest.label = "good";
  manifest.pools = {"good", "like", "bad"};
  manifest.context = {"is_organic"};
  return manifest;
}

// A folder of this name, unique to the running test, that does not exist yet.
inline Path fresh_folder(const std::string& name) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const Path folder = Path(::testing::TempDir()) /
                      (std::string("hstu_") + test->test_suite_name() + "_" + test->name() + "_" + name);
  std::filesystem::remove_all(folder);
  return folder;
}

inline Data write(std::vector<Event> events, const std::string& name = "data") {
  Data data;
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.user, a.time) < std::tie(b.user, b.time);
  });
  data.events = std::move(events);
  for (std::int64_t item = 0; item < 20; ++item) {
    data.artist.push_back(item % 5);
    data.album.push_back(100 + item % 7);
  }
  EventTable table;
  table.context.emplace_back();
  for (const Event& e : data.events) {
    table.user.append(std::span(&e.user, 1));
    table.time.append(std::span(&e.time, 1));
    table.item.append(std::span(&e.item, 1));
    table.action.push_back(e.action);
    table.context[0].append(std::span(&e.organic, 1));
  }
  data.folder = fresh_folder(name);
  std::filesystem::create_directories(data.folder);
  write_dataset(data.folder, description(), table,
                {item_attribute("artist_id", data.artist), item_attribute("album_id", data.album)});
  return data;
}

struct Shape {
  std::int64_t users = 12;
  std::int64_t longest = 60;   // events of a user: 1 to longest
  std::int64_t seconds = 400;  // times in [0, seconds): ties are common
  std::int64_t items = 30;     // more than the attributes cover
};

inline std::vector<Event> random_events(std::uint64_t seed, const Shape& shape = {}) {
  RandomStream random{.key = seed, .index = 0};
  const auto draw = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
  };
  std::vector<Event> events;
  for (std::int64_t u = 0; u < shape.users; ++u) {
    const std::int64_t count = u % 4 == 0 ? 1 : 1 + draw(shape.longest);
    for (std::int64_t i = 0; i < count; ++i) {
      constexpr std::uint8_t kActions[] = {kGood, kGood, kBad, kLike, 0};
      std::uint8_t action = kActions[draw(5)];
      if (action == kGood || action == kBad) action |= kRankableBit;
      events.push_back({.user = 7 * u + 3,
                        .time = draw(shape.seconds),
                        .item = draw(shape.items),
                        .action = action,
                        .organic = draw(2)});
    }
  }
  return events;
}

// Expects `body` to throw E with every one of `words` in its message.
template <typename E>
void expect_error(const std::function<void()>& body, const std::vector<std::string>& words) {
  try {
    body();
    ADD_FAILURE() << "no error was thrown";
  } catch (const E& error) {
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  }
}

// The running counts of `action` (dataset/pool_counts.h), one event at a time.
inline std::vector<std::int64_t> count_pools(std::span<const std::uint8_t> action,
                                             const std::vector<ActionBit>& actions) {
  std::vector<std::int64_t> row(actions.size()), counts = row;
  for (std::size_t p = 0; p < action.size(); ++p) {
    for (std::size_t a = 0; a < actions.size(); ++a) row[a] += (action[p] & actions[a].bit) != 0 ? 1 : 0;
    if ((p + 1) % kPoolBlock == 0) counts.insert(counts.end(), row.begin(), row.end());
  }
  return counts;
}

}  // namespace hstu::small
