#include "hstu/dataset/time_split.h"

#include <utility>
#include <vector>

namespace hstu {
namespace {

constexpr std::int64_t kSecondsPerMinute = 60;
constexpr std::int64_t kSecondsPerDay = 86400;

}  // namespace

TimeSplit split_boundaries(std::int64_t last, const SplitRule& rule) {
  TimeSplit split;
  split.test_end = last;
  split.test_start = split.test_end - rule.test_days * kSecondsPerDay;
  split.train_end = split.test_start - rule.gap_minutes * kSecondsPerMinute;
  split.train_start = split.train_end - rule.train_days * kSecondsPerDay;
  return split;
}

TimeSplitter::TimeSplitter(const TimeSplit& split, EventSink& train, EventSink& test)
    : split_(split), train_(train), test_(test) {}

void TimeSplitter::append(EventTable events) {
  const auto size = static_cast<std::size_t>(events.size());
  std::vector<std::uint8_t> is_train(size);
  std::vector<std::uint32_t> tests;
  const std::vector<std::int64_t> users = events.user.integers(), times = events.time.integers();
  std::size_t trains = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (split_.train_start <= times[i] && times[i] < split_.train_end) {
      is_train[i] = 1;
      ++trains;
      last_train_user_ = users[i];
    } else if (split_.test_start <= times[i] && times[i] < split_.test_end && users[i] == last_train_user_) {
      tests.push_back(static_cast<std::uint32_t>(i));
    }
  }
  if (!tests.empty()) test_.append(events.gather(tests));
  if (trains == 0) return;
  if (trains < size) events.keep(is_train);
  train_.append(std::move(events));
}

}  // namespace hstu
