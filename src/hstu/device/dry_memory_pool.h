// Memory for a dry run: one that computes nothing and finds out how much memory computing would take.
#pragma once

#include <mutex>

#include "hstu/device/memory_pool.h"

namespace hstu {

class DryMemoryPool;

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
  DryMemoryPool* memory = nullptr;
};

// A context with this pool makes a dry run. Its buffers are reserved addresses of the host: pages that
// nothing writes to cost no memory, so that what does not fit this machine can be planned on it.
class DryMemoryPool final : public MemoryPool {
 public:
  // `in_groups`: of a step whose launches reach the GPU in groups (Stream::in_groups).
  explicit DryMemoryPool(const DryDevice& device, bool in_groups = false)
      : MemoryPool(Stream(), 0), device_(device), in_groups_(in_groups) {}

  DryMemoryPool* dry() override { return this; }
  DryStream kernels() { return {device_, this}; }
  // Bytes that late work needs (LaunchGroups::Late): in groups they are not free again before the end.
  void take_late(std::int64_t bytes);
  void end_group();
  void trim() override {}
  MemoryFigures figures() const override;

 private:
  Block acquire(std::int64_t bytes) override;
  void release(Block block, std::int64_t bytes) noexcept override;

  DryDevice device_;
  bool in_groups_;
  mutable std::mutex mutex_;
  MemoryFigures figures_;
  std::int64_t late_ = 0;  // of them in the group so far
};

}  // namespace hstu
