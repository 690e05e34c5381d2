// KeepingPool: memory of another pool that is handed out again and never given back while this pool lives, so
// that launches which were recorded with it (launch_recording.h) own what they use.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "hstu/device/memory_pool.h"

namespace hstu {

class KeepingPool final : public MemoryPool {
 public:
  explicit KeepingPool(std::shared_ptr<MemoryPool> from)
      : MemoryPool(from->stream(), 0), from_(std::move(from)) {}

  void trim() override {}
  MemoryFigures figures() const override;

 private:
  Block acquire(std::int64_t bytes) override;
  void release(Block block, std::int64_t bytes) noexcept override;

  std::shared_ptr<MemoryPool> from_;
  mutable std::mutex mutex_;
  std::multimap<std::int64_t, std::byte*> free_;  // by capacity
  std::vector<Buffer> all_;
  MemoryFigures figures_;
};

}  // namespace hstu
