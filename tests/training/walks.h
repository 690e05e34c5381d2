// A log of users who go from item to item.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/base/random.h"
#include "hstu/dataset/dataset.h"
#include "write_dataset.h"

namespace hstu::testing {

inline constexpr std::int64_t kWalkItems = 41;
inline std::int64_t walk_item(std::int64_t number) {
  return (number << 20) + 1;
}

// Of the events so many follow from the one before: 100 users, 41 items with ids of 40 bits. If all do, no
// user has an item twice. attribute: "number" of each item, from 100.
inline void write_walks(const Path& folder, double follow = 0.95, bool attribute = false) {
  Manifest description;
  description.name = "walks";
  description.actions = {{"event", 1}};
  description.label = "event";
  description.pools = {"event"};
  EventTable table;
  std::vector<std::int64_t> user, item, time;
  RandomStream random{5};
  for (std::int64_t u = 0; u < 100; ++u) {
    auto at = static_cast<std::int64_t>(random.below(follow < 1 ? kWalkItems : 30));  // 30 follows itself
    for (std::int64_t n = 0; n < 6 + u % 9; ++n) {
      user.push_back(u);
      item.push_back(walk_item(at));
      time.push_back(3600 * n + u);
      table.action.push_back(1 | kRankableBit);
      at = random.uniform() < follow ? (5 * at + 3) % kWalkItems
                                     : static_cast<std::int64_t>(random.below(kWalkItems));
    }
  }
  table.user.append(user);
  table.item.append(item);
  table.time.append(time);
  std::filesystem::create_directories(folder);
  if (!attribute) {
    write_dataset(folder, description, table);
    return;
  }
  std::vector<std::int64_t> items, numbers;
  for (std::int64_t i = 0; i < kWalkItems; ++i) items.push_back(walk_item(i)), numbers.push_back(100 + i);
  DatasetWriter writer(folder, description);
  writer.append(ordered(table));
  const std::vector<ItemAttribute> attributes{item_attribute("number", numbers)};
  writer.finish(attributes, {}, {}, [&](Manifest& manifest) { write_item_ids(folder, items, manifest); });
}

}  // namespace hstu::testing
