#include "hstu/baseline/running_counts.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <tuple>
#include <utility>

namespace hstu {

RunningCounts::RunningCounts(std::span<const std::int64_t> keys, std::span<const std::int64_t> times)
    : order_(keys.size()), times_(keys.size()), added_(keys.size()) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(keys[a], times[a], a) < std::tie(keys[b], times[b], b);
  });
  for (std::size_t place = 0; place < order_.size(); ++place) {
    times_[place] = times[order_[place]];
    distinct_.insert(keys[order_[place]]);
    if (distinct_.size() > begin_.size()) begin_.push_back(place);
  }
  begin_.push_back(order_.size());
}

std::size_t RunningCounts::first_later(std::int32_t key, std::int64_t time) const {
  const auto k = static_cast<std::size_t>(key);
  if (time < times_[begin_[k]]) return begin_[k];  // always true with a hold-out in time
  const auto begin = times_.begin() + static_cast<std::ptrdiff_t>(begin_[k]);
  const auto end = times_.begin() + static_cast<std::ptrdiff_t>(begin_[k + 1]);
  return static_cast<std::size_t>(std::upper_bound(begin, end, time) - times_.begin());
}

void RunningCounts::add_at(std::size_t place, const RateCounts& counts) {
  std::atomic_ref(added_[place].events).fetch_add(counts.events, std::memory_order_relaxed);
  std::atomic_ref(added_[place].positives).fetch_add(counts.positives, std::memory_order_relaxed);
}

void RunningCounts::add(std::int64_t key, std::int64_t time, bool positive) {
  const std::int32_t number = distinct_.find(key);
  if (number == DistinctIds::kAbsent) return;
  const std::size_t place = first_later(number, time);
  if (place < begin_[static_cast<std::size_t>(number) + 1]) add_at(place, {1, positive ? 1 : 0});
}

void RunningCounts::Run::add(std::int64_t time, bool positive) {
  if (key_ == DistinctIds::kAbsent) return;
  const std::size_t place = counts_.first_later(key_, time);
  if (place != place_) flush();
  place_ = place;
  pending_.events += 1;
  pending_.positives += positive ? 1 : 0;
}

void RunningCounts::Run::flush() {
  if (pending_.events == 0) return;
  const RateCounts counts = std::exchange(pending_, {});
  if (place_ < counts_.begin_[static_cast<std::size_t>(key_) + 1]) counts_.add_at(place_, counts);
}

std::vector<RateCounts> RunningCounts::answers() const {
  std::vector<RateCounts> answers(order_.size());
  for (std::size_t k = 0; k + 1 < begin_.size(); ++k) {
    RateCounts sum;
    for (std::size_t place = begin_[k]; place < begin_[k + 1]; ++place) {
      sum.events += added_[place].events;
      sum.positives += added_[place].positives;
      answers[order_[place]] = sum;
    }
  }
  return answers;
}

}  // namespace hstu
