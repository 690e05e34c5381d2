#include "hstu/batching/distinct_ids.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hstu {

void DistinctIds::insert(std::span<const std::int64_t> ids, std::int32_t* numbers) {
  constexpr std::size_t kAhead = 32;  // prefetched probes
  std::array<std::size_t, kAhead> home;
  for (std::size_t begin = 0; begin < ids.size(); begin += kAhead) {
    const auto part = ids.subspan(begin, std::min(kAhead, ids.size() - begin));
    reserve(part.size());
    for (std::size_t i = 0; i < part.size(); ++i) {
      home[i] = home_of(part[i]);
      __builtin_prefetch(&slots_[home[i]], 1);
    }
    for (std::size_t i = 0; i < part.size(); ++i) numbers[begin + i] = insert_at(home[i], part[i]);
  }
}

std::span<const DistinctIds::Numbered> DistinctIds::sorted() {
  sorted_.resize(ids_.size());
  for (std::size_t n = 0; n < ids_.size(); ++n) sorted_[n] = {ids_[n], static_cast<std::int32_t>(n)};
  constexpr std::size_t kFew = 256;  // a pass of the other sort costs as much as their comparisons
  if (sorted_.size() <= kFew)
    std::sort(sorted_.begin(), sorted_.end(),
              [](const Numbered& a, const Numbered& b) { return a.id < b.id; });
  else
    sort_by_digits();
  return sorted_;
}

// From the lowest digit to the highest of those in which ids differ: two or three, where a sort by
// comparisons predicts n * log2(n) branches wrongly half of the time.
void DistinctIds::sort_by_digits() {
  constexpr int kBits = 11;
  constexpr std::uint64_t kDigit = (std::uint64_t{1} << kBits) - 1;
  // Negative ids are before the others.
  const auto key_of = [](std::int64_t id) {
    return static_cast<std::uint64_t>(id) ^ (std::uint64_t{1} << 63);
  };
  std::uint64_t differ = 0;
  for (const std::int64_t id : ids_) differ |= key_of(id) ^ key_of(ids_.front());
  other_.resize(sorted_.size());
  for (int shift = 0; shift < 64; shift += kBits) {
    if (((differ >> shift) & kDigit) == 0) continue;
    std::array<std::uint32_t, kDigit + 1> places{};
    for (const std::int64_t id : ids_) ++places[(key_of(id) >> shift) & kDigit];
    std::uint32_t before = 0;
    for (std::uint32_t& place : places) before += std::exchange(place, before);
    for (const Numbered& numbered : sorted_)
      other_[places[(key_of(numbered.id) >> shift) & kDigit]++] = numbered;
    sorted_.swap(other_);
  }
}

void DistinctIds::clear() {
  // A large batch is not to cost the small ones behind it a pass over its table.
  if (slots_.size() > kLeast && ids_.size() * 32 < slots_.size()) slots_.resize(slots_.size() / 4);
  std::fill(slots_.begin(), slots_.end(), Slot{});
  ids_.clear();
}

void DistinctIds::grow() {
  slots_.assign(slots_.size() * 4, Slot{});
  for (std::size_t number = 0; number < ids_.size(); ++number) {
    slots_[find_slot(home_of(ids_[number]), ids_[number])] = {ids_[number],
                                                              static_cast<std::int32_t>(number)};
  }
}

}  // namespace hstu
