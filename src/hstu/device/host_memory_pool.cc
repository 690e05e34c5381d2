#include "hstu/device/host_memory_pool.h"

#include <algorithm>
#include <cstdlib>

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hstu/device/block_sizes.h"

namespace hstu {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kSlack = std::int64_t{64} << 20;
// From this size on a block is mapped by itself, so that freeing it gives its pages back.
constexpr std::int64_t kMapped = std::int64_t{1} << 20;

// Of the whole machine: the system would grant more, and end the program when it is used.
std::int64_t physical_memory() {
  static const std::int64_t bytes = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return bytes;
}

// nullptr when the system has no memory.
std::byte* new_block(std::int64_t capacity) {
  const auto size = static_cast<std::size_t>(capacity);
  void* memory = nullptr;
  if (capacity >= kMapped && !kAddressSanitizer) {
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) memory = nullptr;
  } else {
    memory = std::aligned_alloc(kAlignment, size);
  }
  return static_cast<std::byte*>(memory);
}

void free_block(std::byte* data, std::int64_t capacity) {
  if (capacity >= kMapped && !kAddressSanitizer) {
    munmap(data, static_cast<std::size_t>(capacity));
  } else {
    ASAN_UNPOISON_MEMORY_REGION(data, static_cast<std::size_t>(capacity));
    std::free(data);
  }
}

}  // namespace

HostMemoryPool::~HostMemoryPool() {
  trim();
}

MemoryPool::Block HostMemoryPool::acquire(std::int64_t bytes) {
  const std::scoped_lock lock(mutex_);
  Block block{nullptr, 0};
  const auto fitting = free_.lower_bound(counted_bytes(bytes));
  if (fitting != free_.end() && fitting->first <= 2 * counted_bytes(bytes)) {
    block = {fitting->second.data, fitting->first};
    free_.erase(fitting);
    ASAN_UNPOISON_MEMORY_REGION(block.data, static_cast<std::size_t>(bytes));
  } else {
    block.capacity = block_bytes(bytes);
    const std::int64_t peak = std::max(figures_.peak, figures_.in_use + counted_bytes(bytes));
    const std::int64_t bound = 2 * peak + kSlack;
    free_until((limit() > 0 ? std::min(bound, limit()) : bound) - block.capacity);
    if (limit() > 0 && figures_.reserved + block.capacity > limit()) refuse(bytes, figures_.in_use, "");
    if (figures_.reserved > physical_memory() - block.capacity) {
      refuse(bytes, figures_.in_use, fmt::format("and this machine has {} bytes", physical_memory()).c_str());
    }
    block.data = new_block(block.capacity);
    if (block.data == nullptr) refuse(bytes, figures_.in_use, "and the system has no more");
    figures_.reserved += block.capacity;
    if (reuse_) {
      ASAN_POISON_MEMORY_REGION(block.data + bytes, static_cast<std::size_t>(block.capacity - bytes));
    }
  }
  figures_.in_use += counted_bytes(bytes);
  figures_.peak = std::max(figures_.peak, figures_.in_use);
  return block;
}

void HostMemoryPool::release(Block block, std::int64_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  figures_.in_use -= counted_bytes(bytes);
  if (!reuse_) {
    figures_.reserved -= block.capacity;
    return free_block(block.data, block.capacity);
  }
  ASAN_POISON_MEMORY_REGION(block.data, static_cast<std::size_t>(block.capacity));
  // Before its equals: the block that was used last is handed out first.
  free_.emplace_hint(free_.lower_bound(block.capacity), block.capacity, Free{block.data, ++releases_});
}

// Frees unused blocks, the longest unused first, until at most `reserved` bytes are held or none is left.
void HostMemoryPool::free_until(std::int64_t reserved) {
  while (figures_.reserved > reserved && !free_.empty()) {
    const auto oldest = std::min_element(free_.begin(), free_.end(), [](const auto& a, const auto& b) {
      return a.second.since < b.second.since;
    });
    free_block(oldest->second.data, oldest->first);
    figures_.reserved -= oldest->first;
    free_.erase(oldest);
  }
}

void HostMemoryPool::trim() {
  const std::scoped_lock lock(mutex_);
  free_until(0);
}

MemoryFigures HostMemoryPool::figures() const {
  const std::scoped_lock lock(mutex_);
  return figures_;
}

}  // namespace hstu
