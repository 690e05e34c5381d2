#include "hstu/device/host_memory_pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hstu/device/block_sizes.h"

namespace hstu {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kSlack = std::int64_t{16} << 20;
// From this size on a block is mapped by itself: freeing it gives its pages back, and it can change its size.
constexpr std::int64_t kMapped = std::int64_t{1} << 20;

#ifdef __SANITIZE_THREAD__  // which does not see that a block moves
constexpr bool kMapsBlocks = false;
#else
constexpr bool kMapsBlocks = !kAddressSanitizer;
#endif

bool is_mapped(std::int64_t capacity) {
  return kMapsBlocks && capacity >= kMapped;
}

// In finer steps than block_bytes() for a mapped block, which changes its size where it does not fit.
std::int64_t capacity_for(std::int64_t bytes) {
  if (!is_mapped(bytes)) return block_bytes(bytes);
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
  const std::int64_t step = std::max(power, kMapped) / 16;
  return (bytes + step - 1) / step * step;
}

// Of the whole machine: the system would grant more, and end the program when it is used.
std::int64_t physical_memory() {
  static const std::int64_t bytes = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return bytes;
}

// nullptr when the system has no memory.
std::byte* new_block(std::int64_t capacity) {
  const auto size = static_cast<std::size_t>(capacity);
  void* memory = nullptr;
  if (is_mapped(capacity)) {
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) memory = nullptr;
  } else {
    memory = std::aligned_alloc(kAlignment, size);
  }
  return static_cast<std::byte*>(memory);
}

// The pages of a mapped block remain, at other addresses if need be. nullptr when the system has no memory.
std::byte* resized(std::byte* data, std::int64_t before, std::int64_t capacity) {
  void* const memory =
      mremap(data, static_cast<std::size_t>(before), static_cast<std::size_t>(capacity), MREMAP_MAYMOVE);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

void free_block(std::byte* data, std::int64_t capacity) {
  if (is_mapped(capacity)) {
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

std::int64_t HostMemoryPool::most_kept(std::int64_t peak) {
  return peak / 32 + kSlack;
}

// Of the free blocks, the nearest in size among those that have at least half and at most twice `capacity`
// bytes; one that cannot change its size, at least `capacity`.
HostMemoryPool::FreeBlocks::iterator HostMemoryPool::nearest(std::int64_t capacity) {
  const auto above = free_.lower_bound(capacity);
  const bool has_above = above != free_.end() && above->first <= 2 * capacity;
  const auto larger = has_above ? above : free_.end();
  if (!is_mapped(capacity) || above == free_.begin()) return larger;
  const auto below = std::prev(above);
  if (!is_mapped(below->first) || 2 * below->first < capacity) return larger;
  return has_above && above->first - capacity <= capacity - below->first ? above : below;
}

// The block, or a new one, with another capacity. Throws OutOfMemory; the block is then as before.
MemoryPool::Block HostMemoryPool::change(Block block, std::int64_t capacity, std::int64_t bytes) {
  const std::int64_t more = capacity - block.capacity;
  const std::int64_t peak = std::max(figures_.peak, figures_.in_use + counted_bytes(bytes));
  const std::int64_t bound = peak + most_kept(peak);
  if (more > 0) free_until((limit() > 0 ? std::min(bound, limit()) : bound) - more);
  if (limit() > 0 && figures_.reserved + more > limit()) refuse(bytes, figures_.in_use, "");
  if (figures_.reserved > physical_memory() - more) {
    refuse(bytes, figures_.in_use, fmt::format("and this machine has {} bytes", physical_memory()).c_str());
  }
  std::byte* const data =
      block.data == nullptr ? new_block(capacity) : resized(block.data, block.capacity, capacity);
  if (data == nullptr) refuse(bytes, figures_.in_use, "and the system has no more");
  figures_.reserved += more;
  return {data, capacity};
}

MemoryPool::Block HostMemoryPool::acquire(std::int64_t bytes) {
  const std::scoped_lock lock(mutex_);
  const std::int64_t capacity = capacity_for(counted_bytes(bytes));
  Block block{nullptr, 0};
  if (const auto found = nearest(capacity); found != free_.end()) {
    block = {found->second.data, found->first};
    free_.erase(found);
  }
  const bool fits = block.capacity >= capacity && block.capacity <= capacity + capacity / 8;
  const bool can_change = is_mapped(block.capacity) && is_mapped(capacity);
  if (block.data == nullptr || (!fits && can_change)) {
    try {
      block = change(block, capacity, bytes);
    } catch (const OutOfMemory&) {
      if (block.data != nullptr) keep(block);
      throw;
    }
  }
  if (reuse_) {
    ASAN_UNPOISON_MEMORY_REGION(block.data, static_cast<std::size_t>(bytes));
    ASAN_POISON_MEMORY_REGION(block.data + bytes, static_cast<std::size_t>(block.capacity - bytes));
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
  keep(block);
}

// Before its equals: the block that was used last is handed out first.
void HostMemoryPool::keep(Block block) {
  ASAN_POISON_MEMORY_REGION(block.data, static_cast<std::size_t>(block.capacity));
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
