// A GPU's pool: the driver's stream-ordered allocator.
#include "hstu/device/memory_pool.h"

#include <algorithm>
#include <mutex>

#include <cuda_runtime_api.h>

#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda_calls.h"

namespace hstu::cuda {
namespace {

class CudaMemoryPool final : public MemoryPool {
 public:
  CudaMemoryPool(const Stream& stream, std::int64_t limit) : MemoryPool(stream, limit) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;  // the name of ordinary device memory
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device().index;
    check_cuda(cudaMemPoolCreate(&pool_, &properties), "making a memory pool");
    // What is freed stays with the pool, up to the limit, until trim().
    std::uint64_t keep = limit > 0 ? static_cast<std::uint64_t>(limit) : ~std::uint64_t{0};
    check_cuda(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep),
               "setting up a memory pool");
  }
  ~CudaMemoryPool() override { cudaMemPoolDestroy(pool_); }

  void trim() override {
    stream().synchronize();  // frees that the stream has not reached yet count as in use
    check_cuda(cudaMemPoolTrimTo(pool_, 0), "trimming a memory pool");
  }
  MemoryFigures figures() const override {
    return {attribute(cudaMemPoolAttrUsedMemCurrent), attribute(cudaMemPoolAttrUsedMemHigh),
            attribute(cudaMemPoolAttrReservedMemCurrent)};
  }

 private:
  Block acquire(std::int64_t bytes) override {
    const std::int64_t size = std::max<std::int64_t>(bytes, 1);
    const std::scoped_lock lock(mutex_);
    const std::int64_t in_use = attribute(cudaMemPoolAttrUsedMemCurrent);
    if (limit() > 0 && in_use + size > limit()) refuse(bytes, in_use, "");
    void* data = nullptr;
    const cudaError_t status =
        cudaMallocFromPoolAsync(&data, static_cast<std::size_t>(size), pool_, stream().cuda());
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // or the next launch would report it
      refuse(bytes, in_use, "and the GPU has no more");
    }
    check_cuda(status, "allocating GPU memory");
    return {static_cast<std::byte*>(data), bytes};
  }
  void release(Block block, std::int64_t) noexcept override { cudaFreeAsync(block.data, stream().cuda()); }
  std::int64_t attribute(cudaMemPoolAttr name) const {
    std::uint64_t value = 0;
    check_cuda(cudaMemPoolGetAttribute(pool_, name, &value), "asking a memory pool");
    return static_cast<std::int64_t>(value);
  }

  cudaMemPool_t pool_ = nullptr;
  std::mutex mutex_;
};

}  // namespace

std::shared_ptr<MemoryPool> new_pool(const Stream& stream, std::int64_t limit) {
  return std::make_shared<CudaMemoryPool>(stream, limit);
}

}  // namespace hstu::cuda
