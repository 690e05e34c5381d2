#include "hstu/dataset/time_split.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr std::int64_t kSecondsPerMinute = 60;
constexpr std::int64_t kSecondsPerDay = 86400;

std::vector<bool> interval_mask(const EventTable& events, std::int64_t begin, std::int64_t end) {
  std::vector<bool> mask(static_cast<std::size_t>(events.size()));
  for (std::int64_t i = 0; i < events.size(); ++i) {
    const std::int64_t time = events.time[i];
    mask[static_cast<std::size_t>(i)] = begin <= time && time < end;
  }
  return mask;
}

void keep_users_of(const EventTable& reference, EventTable& events) {
  std::unordered_set<std::int64_t> known;
  for (std::int64_t i = 0; i < reference.size(); ++i) {
    const bool again =
        i > 0 && reference.user[i] == reference.user[i - 1];  // Logs are mostly in order of users.
    if (!again) known.insert(reference.user[i]);
  }
  std::vector<bool> mask(static_cast<std::size_t>(events.size()));
  for (std::int64_t i = 0; i < events.size(); ++i) {
    mask[static_cast<std::size_t>(i)] = known.contains(events.user[i]);
  }
  events.keep(mask);
}

}  // namespace

TimeSplit split_boundaries(std::int64_t last, const SplitRule& rule) {
  TimeSplit split;
  split.test_end = last;
  split.test_start = split.test_end - rule.test_days * kSecondsPerDay;
  split.train_end = split.test_start - rule.gap_minutes * kSecondsPerMinute;
  split.train_start = split.train_end - rule.train_days * kSecondsPerDay;
  return split;
}

SplitEvents split_events(EventTable events, const SplitRule& rule) {
  require(rule.test_days > 0, "expected test_days > 0, found {}", rule.test_days);
  const TimeRange range = time_range(events);
  SplitEvents result;
  result.boundaries = split_boundaries(range.max, rule);
  const TimeSplit& split = result.boundaries;
  result.test = events.select(interval_mask(events, split.test_start, split.test_end));
  events.keep(interval_mask(events, split.train_start, split.train_end));
  result.train = std::move(events);
  if (result.train.size() == 0) {
    fail_usage(
        "no event is left to train on: the log spans [{}, {}] seconds, and the train interval is [{}, {}); "
        "hold out "
        "less (test days 0 keeps every event)",
        range.min, range.max, split.train_start, split.train_end);
  }
  keep_users_of(result.train, result.test);
  return result;
}

}  // namespace hstu
