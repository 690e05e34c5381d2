// Memory for a dry run: one that computes nothing and finds out how much memory computing would take.
#pragma once

#include <mutex>

#include "hstu/device/memory_pool.h"

namespace hstu {

// The device whose memory is planned; it need not be here.
struct DryDevice {
  int major = 0, minor = 0;  // compute capability; 0.0: the host
  int multiprocessors = 0;

  bool is_host() const { return major == 0; }
};

// The stream of kernels in a dry run: they take the scratch memory that they would take on `device`, and do
// nothing else (kernels/dry.h).
struct DryStream {
  DryDevice device;
  MemoryPool* memory = nullptr;
};

// A context with this pool makes a dry run. Its buffers are reserved addresses of the host: pages that
// nothing writes to cost no memory, so that what does not fit this machine can be planned on it.
class DryMemoryPool final : public MemoryPool {
 public:
  explicit DryMemoryPool(const DryDevice& device) : MemoryPool(Stream(), 0), device_(device) {}

  DryStream kernels() { return {device_, this}; }
  void trim() override {}
  MemoryFigures figures() const override;

 private:
  Block acquire(std::int64_t bytes) override;
  void release(Block block, std::int64_t bytes) noexcept override;

  DryDevice device_;
  mutable std::mutex mutex_;
  MemoryFigures figures_;
};

}  // namespace hstu
