#include "hstu/batching/token_events.h"

#include <cstring>

#include "hstu/base/error.h"
#include "hstu/dataset/manifest.h"

namespace hstu {
namespace {

constexpr std::int64_t kBlock = 512;  // events that are compared together

// The place of the first of `end` elements that differ. Blocks are compared by memcmp, at the speed of
// memory.
std::int64_t first_difference(const std::int64_t* a, const std::int64_t* b, std::int64_t end) {
  std::int64_t begin = 0;
  for (; begin < end; begin += kBlock) {
    const std::int64_t n = std::min(kBlock, end - begin);
    if (std::memcmp(a + begin, b + begin, static_cast<std::size_t>(n) * sizeof *a) != 0) break;
  }
  while (begin < end && a[begin] == b[begin]) ++begin;
  return std::min(begin, end);
}

// The same of actions, without exits inside a block.
std::int64_t first_difference(const std::uint8_t* a, const std::uint8_t* b, std::int64_t end) {
  const auto differ = [](std::uint8_t x, std::uint8_t y) {
    return static_cast<std::uint8_t>((x ^ y) & ~kRankableBit);
  };
  std::int64_t begin = 0;
  for (; begin < end; begin += kBlock) {
    std::uint8_t any = 0;
    const std::int64_t stop = std::min(end, begin + kBlock);
    for (std::int64_t i = begin; i < stop; ++i) any = static_cast<std::uint8_t>(any | differ(a[i], b[i]));
    if (any != 0) break;
  }
  while (begin < end && differ(a[begin], b[begin]) == 0) ++begin;
  return std::min(begin, end);
}

template <typename T>
void replace_from(std::vector<T>& to, std::span<const T> from, std::int64_t same, std::int64_t count) {
  to.resize(static_cast<std::size_t>(same));
  to.insert(to.end(), from.begin() + same, from.begin() + count);
}

}  // namespace

std::int64_t KeptEvents::equal_events(const TokenEvents& events, std::int64_t most) const {
  std::int64_t end = std::min({most, size(), events.size()});
  if (end <= 0 || action_id_.empty() != events.action_id.empty()) return 0;
  end = first_difference(item_.data(), events.item.data(), end);
  end = first_difference(time_.data(), events.time.data(), end);
  end = first_difference(action_.data(), events.action.data(), end);
  if (!action_id_.empty()) end = first_difference(action_id_.data(), events.action_id.data(), end);
  return end;
}

void KeptEvents::shorten(std::int64_t events) {
  if (events >= size()) return;
  next_time_ = time_behind(events);
  const auto count = static_cast<std::size_t>(events);
  item_.resize(count), time_.resize(count), action_.resize(count);
  if (!action_id_.empty()) action_id_.resize(count);
}

void KeptEvents::replace(const TokenEvents& events, std::int64_t same, std::int64_t count) {
  require(same <= size() && same <= count && count <= events.size(),
          "expected at most {} known events of {}, found {}", size(), count, same);
  if (count < events.size()) next_time_ = events.time[static_cast<std::size_t>(count)];
  replace_from(item_, events.item, same, count);
  replace_from(time_, events.time, same, count);
  replace_from(action_, events.action, same, count);
  if (!events.action_id.empty())
    replace_from(action_id_, events.action_id, same, count);
  else
    action_id_.clear();
}

}  // namespace hstu
