// The causal gather: which events before an anchor make up its history.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/options.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

// Options resolved against a dataset's actions.
struct HistoryRule {
  std::uint8_t pool_bits = 0;   // an event is eligible when (action & pool_bits) != 0
  bool pool_capped = false;     // interleaved: at most pool_cap events of each pool
  std::int64_t pool_cap = 0;    // max(1, history_length / number of pools)
  std::int64_t scan_limit = 0;  // events
  std::int64_t longest = 0;     // no history is longer
};

// UsageError for lengths and limits below 1, unknown or repeated pools, or a max_sequence that leaves no
// room beside `contextual_tokens` and the candidate.
HistoryRule resolve_history(const DataOptions& options, const Manifest& manifest);

// Gathers histories one after another; owns its scratch space, so every thread has its own.
class HistoryGatherer {
 public:
  HistoryGatherer(std::span<const std::uint8_t> action, const HistoryRule& rule)
      : action_(action), rule_(rule), positions_(static_cast<std::size_t>(rule.longest)) {}

  // Positions of the history of the anchor at `anchor`, ascending, all in [user_start, anchor). Of everything
  // the strategy selects in [max(user_start, anchor - scan_limit), anchor) the last rule.longest are kept. An
  // event of several pools counts in each and is kept once, if any of them has room. Valid until the next
  // call.
  std::span<const std::int64_t> gather(std::int64_t user_start, std::int64_t anchor);

 private:
  std::span<const std::uint8_t> action_;
  HistoryRule rule_;
  std::vector<std::int64_t> positions_;  // (longest) filled from the back
};

}  // namespace hstu
