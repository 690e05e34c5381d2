#include "hstu/device/keeping_pool.h"

#include <algorithm>

namespace hstu {

MemoryFigures KeepingPool::figures() const {
  const std::scoped_lock lock(mutex_);
  return figures_;
}

// A block serves what is at least half as large.
MemoryPool::Block KeepingPool::acquire(std::int64_t bytes) {
  const std::scoped_lock lock(mutex_);
  constexpr std::int64_t kUnit = 256;
  const std::int64_t wanted = std::max(kUnit, (bytes + kUnit - 1) / kUnit * kUnit);
  Block block{nullptr, wanted};
  const auto found = free_.lower_bound(wanted);
  if (found != free_.end() && found->first <= 2 * wanted) {
    block = {found->second, found->first};
    free_.erase(found);
  } else {
    all_.push_back(from_->allocate(wanted));
    block.data = all_.back().data();
    figures_.reserved += wanted;
  }
  figures_.in_use += block.capacity;
  figures_.peak = std::max(figures_.peak, figures_.in_use);
  return block;
}

void KeepingPool::release(Block block, std::int64_t /*bytes*/) noexcept {
  const std::scoped_lock lock(mutex_);
  figures_.in_use -= block.capacity;
  free_.emplace(block.capacity, block.data);
}

}  // namespace hstu
