// The causal gather: selects the events before an anchor that form its history.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/options.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/pool_counts.h"

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
  // `action` and its running counts must outlive the gatherer.
  HistoryGatherer(std::span<const std::uint8_t> action, const PoolCounts& counts, const HistoryRule& rule);

  // Positions of the history of the anchor at `anchor`, ascending, all in [user_start, anchor): the last
  // rule.longest of the events that the strategy selects in [max(user_start, anchor - scan_limit), anchor).
  // An event of several pools counts in each and is kept once, if any of them has room. Valid until the next
  // call.
  std::span<const std::int64_t> gather(std::int64_t user_start, std::int64_t anchor);

 private:
  // The position of the first of the pool's last `wanted` events before `anchor`, not before `begin`.
  std::int64_t start_of_pool(const HistoryRule::Pool& pool, std::int64_t begin, std::int64_t anchor) const;
  // The same for the events of any pool together.
  std::int64_t start_of_all(std::int64_t begin, std::int64_t anchor) const;
  void append(std::int64_t begin, std::int64_t end, std::span<const HistoryRule::Pool> pools);

  const std::uint8_t* action_;
  PoolCounts counts_;
  HistoryRule rule_;
  struct Start {
    std::int64_t position;
    HistoryRule::Pool pool;
  };
  std::vector<Start> starts_;            // one per pool
  std::vector<HistoryRule::Pool> open_;  // scratch
  std::vector<std::int64_t> positions_;  // sized for all events that can be selected
  std::size_t selected_ = 0;             // number of positions_ in use
};

}  // namespace hstu
