// A dataset that a model learns in a few seconds, generated in memory and written to a test's folder.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "hstu/options/options.h"
#include "support/kind_options.h"
#include "temporary_folder.h"
#include "write_dataset.h"

namespace hstu::testing {

// Users like half of the items, by the parities of item and user; every event is rankable. The context column
// "worth" has values from -20 to 29. Event n of every user, from 0, is in the n-th thousand of seconds. If
// `weighted`, an event has the weight of its item: small_weight.
inline float small_weight(std::int64_t item) {
  return static_cast<float>(item % 4) / 2;
}
struct SmallEvents {
  Manifest description;
  EventTable table;
};
inline SmallEvents small_events(std::int64_t users, std::int64_t first, std::int64_t end,
                                bool weighted = false) {
  SmallEvents events;
  Manifest& description = events.description;
  description.name = "small";
  description.actions = {{"positive", 1}, {"negative", 2}};
  description.label = "positive";
  description.pools = {"positive", "negative"};
  description.context = {"worth"};
  EventTable& table = events.table;
  std::vector<std::int64_t> user, item, time, worth;
  RandomStream random{11};
  for (std::int64_t u = 0; u < users; ++u) {
    for (std::int64_t n = 0; n < end; ++n) {
      const auto of_item = static_cast<std::int64_t>(random.below(12));
      const bool positive = (of_item + u) % 2 == 0 ? random.uniform() < 0.9 : random.uniform() < 0.1;
      if (n < first) continue;
      item.push_back(of_item);
      user.push_back(u);
      time.push_back(1000 * n + u);
      worth.push_back((17 * u + 29 * n) % 50 - 20);
      table.action.push_back(static_cast<std::uint8_t>((positive ? 1 : 2) | kRankableBit));
    }
  }
  table.user.append(user);
  table.item.append(item);
  table.time.append(time);
  table.context.resize(1);
  table.context[0].append(worth);
  if (!weighted) return events;
  description.weighted = true;
  std::vector<std::int64_t> bits;
  for (const std::int64_t of_item : item) bits.push_back(weight_bits(small_weight(of_item)));
  table.context.emplace_back().append(bits);
  return events;
}

inline void write_small_dataset(const Path& folder, std::int64_t users = 40,
                                std::int64_t events_per_user = 30, bool weighted = false) {
  const SmallEvents events = small_events(users, 0, events_per_user, weighted);
  std::filesystem::create_directories(folder);
  write_dataset(folder, events.description, events.table);
}

// Adds events [first, end) of every user as a segment.
inline void extend_small_dataset(const Path& folder, std::int64_t first, std::int64_t end,
                                 std::int64_t users = 40) {
  const SmallEvents events = small_events(users, first, end);
  append_segment(folder, events.description, events.table);
}

inline RunOptions small_run(const Path& dataset) {
  RunOptions options;
  options.device = "host";
  options.data.path = dataset;
  options.data.options.history_length = 10;
  options.data.options.strategy = HistoryStrategy::last_n;
  options.data.options.window_seconds = 10'000;
  options.data.shuffle_fraction = 1;
  options.features.context = {{"user", {"user"}, 0, false}};
  if (options.model.kind().name == "dlrmv4") {  // a test program may have other kinds
    Dlrmv4Config& model = dlrmv4_of(options);
    model.embedding_dim = model.dim = 8;
    model.head_dim = 4;
    model.preprocessor_hidden = model.head_hidden = 8;
    model.positions = 16;
    model.time_buckets = 32;
    model.max_sequence = 16;
  }
  options.training.batch_size = 16;
  options.dense.learning_rate = 0.01;
  options.sparse.learning_rate = 0.1;
  options.evaluation.holdout.fraction = 0.2;
  options.metrics.every_steps = 5;
  return options;
}

}  // namespace hstu::testing
