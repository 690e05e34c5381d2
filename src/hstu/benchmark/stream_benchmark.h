// A long stream of ids through one limited table, beside a simulation of what it must keep.
#pragma once

#include <cstdint>
#include <functional>

#include "hstu/base/json.h"

namespace hstu {

struct StreamOptions {
  std::int64_t events = 100'000'000;
  std::int64_t step = 1'000'000;  // events of a step
  std::int64_t ids = 10'000'000;  // that events are drawn from
  std::int64_t capacity = 1'000'000;
  std::int64_t dim = 1;
  double power = 0.8;  // of the law of their frequencies
  std::uint64_t seed = 1;
};

// Every step looks up, updates and evicts as training does: the table evicts "lru". The simulation has the
// last step of every id and, for each step, its ids in order; it evicts the lowest ids of the oldest step.
// Gives "hits" and "simulated_hits" (of the distinct ids of all steps, "lookups"), "hit_rate", "distinct"
// (ids seen at all), "rows", "evicted", "table_mib" and "peak_rss_mib" (after each tenth of the stream) and
// "cpu_s". Throws Error at the first step whose hits differ. `progress` is called after each step with the
// events so far.
Json stream_ids(const StreamOptions& options, const std::function<void(std::int64_t)>& progress = {});

}  // namespace hstu
