#include "hstu/device/dry_memory_pool.h"

#include <algorithm>
#include <utility>

#include <sys/mman.h>

#include "hstu/device/block_sizes.h"

namespace hstu {

MemoryPool::Block DryMemoryPool::acquire(std::int64_t bytes) {
  void* const addresses = mmap(nullptr, static_cast<std::size_t>(counted_bytes(bytes)),
                               PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const std::scoped_lock lock(mutex_);
  if (addresses == MAP_FAILED) refuse(bytes, figures_.in_use, "and the system reserves no more addresses");
  figures_.in_use += counted_bytes(bytes);
  figures_.peak = std::max(figures_.peak, figures_.in_use);
  figures_.reserved = figures_.in_use;
  return {static_cast<std::byte*>(addresses), bytes};
}

void DryMemoryPool::release(Block block, std::int64_t bytes) noexcept {
  munmap(block.data, static_cast<std::size_t>(counted_bytes(bytes)));
  const std::scoped_lock lock(mutex_);
  figures_.in_use -= counted_bytes(bytes);
  figures_.reserved = figures_.in_use;
}

void DryMemoryPool::take_late(std::int64_t bytes) {
  const std::scoped_lock lock(mutex_);
  figures_.peak = std::max(figures_.peak, figures_.in_use + counted_bytes(bytes));
  if (!in_groups_) return;
  late_ += counted_bytes(bytes);
  figures_.in_use += counted_bytes(bytes);
  figures_.reserved = figures_.in_use;
}

void DryMemoryPool::end_group() {
  const std::scoped_lock lock(mutex_);
  figures_.in_use -= std::exchange(late_, 0);
  figures_.reserved = figures_.in_use;
}

MemoryFigures DryMemoryPool::figures() const {
  const std::scoped_lock lock(mutex_);
  return figures_;
}

}  // namespace hstu
