// A dataset for the harnesses of files that belong to one.
#pragma once

#include <array>

#include "fuzz/harness.h"
#include "hstu/dataset/writer.h"

namespace hstu::fuzz {

// Twelve events of three users, made once.
inline const Path& small_dataset() {
  static const Path folder = made_folder("ds", [](const Path& path) {
    Manifest description;
    description.name = "small";
    description.actions = {{.name = "like", .bit = 1}};
    description.label = "like";
    description.pools = {"like"};
    EventTable events;
    for (std::int64_t e = 0; e < 12; ++e) {
      const std::array user{e / 4}, time{100'000 * (e % 4)}, item{e % 5};
      events.user.append(user);
      events.time.append(time);
      events.item.append(item);
      events.action.push_back(static_cast<std::uint8_t>(kRankableBit | (e % 3 == 0 ? 1 : 0)));
    }
    DatasetWriter writer(path, description);
    writer.append(std::move(events));
    writer.finish({});
  });
  return folder;
}

}  // namespace hstu::fuzz
