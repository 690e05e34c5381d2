// The host's pool: free blocks by size, in front of the system's allocator.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "hstu/device/memory_pool.h"

namespace hstu {

// Under AddressSanitizer every buffer comes from the allocator and goes back to it, so that a use after the
// end of a tensor is found.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#else
inline constexpr bool kAddressSanitizer = false;
#endif

// A buffer gets the free block that is nearest in size, between half and twice its own, else a new one. Large
// blocks change their size without a copy and keep their pages, so that batches of different lengths need no
// memory beside each other. Before the pool would hold more than the peak, 3 % of it and 16 MiB, it frees the
// blocks that nobody has used for longest.
class HostMemoryPool final : public MemoryPool {
 public:
  // reuse = false: blocks are freed at once. With reuse, AddressSanitizer sees free blocks as poisoned.
  explicit HostMemoryPool(std::int64_t limit = 0, bool reuse = !kAddressSanitizer)
      : MemoryPool(Stream(), limit), reuse_(reuse) {}
  ~HostMemoryPool() override;

  // The bytes of free blocks that a pool keeps at most whose buffers had `peak` bytes.
  static std::int64_t most_kept(std::int64_t peak);

  void trim() override;
  MemoryFigures figures() const override;

 private:
  struct Free {
    std::byte* data;
    std::uint64_t since;  // number of the release
  };
  using FreeBlocks = std::multimap<std::int64_t, Free>;  // by capacity

  Block acquire(std::int64_t bytes) override;
  void release(Block block, std::int64_t bytes) noexcept override;
  FreeBlocks::iterator nearest(std::int64_t capacity);
  Block change(Block block, std::int64_t capacity, std::int64_t bytes);
  void keep(Block block);
  void free_until(std::int64_t reserved);

  const bool reuse_;
  mutable std::mutex mutex_;
  FreeBlocks free_;
  MemoryFigures figures_;
  std::uint64_t releases_ = 0;
};

}  // namespace hstu
