// What samples have of the events of a history: events with equal values are equal tokens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hstu {

// Spans of one length, oldest first.
struct TokenEvents {
  std::span<const std::int64_t> item, time;  // original ids; seconds
  std::span<const std::uint8_t> action;      // bits; kRankableBit does not matter
  // Of Samples::event_action; empty where it is made of `action`, or not wanted.
  std::span<const std::int64_t> action_id;

  std::int64_t size() const { return std::ssize(item); }
};

// The same in memory of its own, of a history that grows at its end.
class KeptEvents {
 public:
  std::int64_t size() const { return std::ssize(item_); }
  // How many of the first `most` events are equal: the place of the first difference.
  std::int64_t equal_events(const TokenEvents& events, std::int64_t most) const;
  // The time of the event behind the first `count`, which is one of them or was there when they became these.
  std::int64_t time_behind(std::int64_t count) const {
    return count < size() ? time_[static_cast<std::size_t>(count)] : next_time_;
  }
  void shorten(std::int64_t events);
  // Becomes the first `count` of `events`, of which the first `same` are what it has.
  void replace(const TokenEvents& events, std::int64_t same, std::int64_t count);

 private:
  std::vector<std::int64_t> item_, time_, action_id_;
  std::vector<std::uint8_t> action_;
  std::int64_t next_time_ = 0;  // of the event that was behind them
};

}  // namespace hstu
