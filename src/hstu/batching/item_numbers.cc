#include "hstu/batching/item_numbers.h"

namespace hstu {

void ItemNumbers::clear() {
  distinct_.clear();
  user_start_ = -1;
  known_.clear();
}

void ItemNumbers::number(const MappedColumn& item, std::int64_t user_start,
                         std::span<const std::int64_t> positions, std::int32_t* numbers) {
  if (positions.empty()) return;
  if (user_start != user_start_ || positions.front() < base_) {
    user_start_ = user_start;
    base_ = positions.front();
    known_.clear();
  }
  const auto reach = static_cast<std::size_t>(positions.back() - base_ + 1);
  if (known_.size() < reach) known_.resize(reach, DistinctIds::kAbsent);
  std::int32_t* const known = known_.data();  // position p has index p - base
  const std::int64_t base = base_;

  events_.clear();
  for (const std::int64_t p : positions) {
    if (known[p - base] == DistinctIds::kAbsent) events_.push_back(p);
  }
  ids_.resize(events_.size());
  found_.resize(events_.size());
  item.visit([&](const auto* elements) {
    for (std::size_t i = 0; i < events_.size(); ++i)
      ids_[i] = static_cast<std::int64_t>(elements[events_[i]]);  // NOLINT(bugprone-signed-char-misuse): ids
  });
  distinct_.insert(ids_, found_.data());
  for (std::size_t i = 0; i < events_.size(); ++i) known[events_[i] - base] = found_[i];
  for (std::size_t i = 0; i < positions.size(); ++i) numbers[i] = known[positions[i] - base];
}

}  // namespace hstu
