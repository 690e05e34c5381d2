// The causal gather: selects the events before an anchor that form its history.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/options.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/pool_counts.h"
#include "hstu/dataset/user_events.h"

namespace hstu {

// Options resolved against a dataset's actions.
struct HistoryRule {
  struct Pool {
    std::uint8_t bit = 0;
    std::int64_t action = 0;  // its index in the manifest's actions: the column of the running counts
  };
  std::vector<Pool> pools;
  std::uint8_t pool_bits = 0;   // an event is eligible when (action & pool_bits) != 0
  bool pool_capped = false;     // interleaved: at most pool_cap events of each pool
  std::int64_t pool_cap = 0;    // max(1, history_length / number of pools)
  std::int64_t scan_limit = 0;  // events
  std::int64_t longest = 0;     // maximum length of a history
};

// UsageError for lengths and limits below 1, unknown or repeated pools, or a max_sequence without room for
// history in addition to `contextual_tokens` and the candidate.
HistoryRule resolve_history(const DataOptions& options, const Manifest& manifest);

// Gathers histories sequentially; owns its scratch memory, so each thread needs its own gatherer.
class HistoryGatherer {
 public:
  // `action` and its running counts, of each segment, must outlive the gatherer. Without counts the events
  // are read one by one.
  HistoryGatherer(std::span<const std::uint8_t> action, std::vector<PoolCounts> counts,
                  const HistoryRule& rule);

  // From now on of these actions in memory, which have no counts and must outlive it.
  void read(std::span<const std::uint8_t> action) {
    action_ = action.data();
    segments_.clear();
  }
  // Positions of the history, in the order of `before`, a user's events before an anchor: the last
  // rule.longest of the events that the strategy selects among the last scan_limit of them. An event of
  // several pools counts in each and is kept once, if any of them has room. Valid until the next call.
  std::span<const std::int64_t> gather(const UserEvents& before);

 private:
  void gather_range(std::int64_t user_start, std::int64_t anchor);
  // From the last event to the first.
  void gather_ranges(const UserEvents& before);
  void take_range(PositionRange range);
  bool take(std::uint8_t action);
  // The position of the first of the pool's last `wanted` events before `anchor`, not before `begin`.
  std::int64_t start_of_pool(const HistoryRule::Pool& pool, std::int64_t begin, std::int64_t anchor) const;
  // The same for the events of any pool together.
  std::int64_t start_of_all(std::int64_t begin, std::int64_t anchor) const;
  void append(std::int64_t begin, std::int64_t end, std::span<const HistoryRule::Pool> pools);

  const std::uint8_t* action_;
  std::vector<PoolCounts> segments_;
  PoolCounts counts_;  // of the segment that is read
  HistoryRule rule_;
  struct Start {
    std::int64_t position;
    HistoryRule::Pool pool;
  };
  std::vector<Start> starts_;            // one per pool
  std::vector<HistoryRule::Pool> open_;  // scratch
  std::vector<std::int64_t> room_;       // scratch, one per pool
  std::vector<std::int64_t> positions_;  // sized for all events that can be selected
  std::size_t selected_ = 0;             // number of positions_ in use
};

}  // namespace hstu
