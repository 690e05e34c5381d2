// A GPU's pool: the driver's stream-ordered allocator, and lists of small blocks.
#include "hstu/device/memory_pool.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include <cuda_runtime_api.h>

#include "hstu/device/block_sizes.h"
#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda_calls.h"

namespace hstu::cuda {
namespace {

// The driver takes microseconds for a block: as long as a small kernel. Blocks up to kKept bytes are kept
// here, kMostKept of them in all: a block of one size does not serve another.
constexpr std::int64_t kKept = std::int64_t{8} << 20, kMostKept = std::int64_t{256} << 20;

// All work on a pool's memory is on its stream, so a block can be handed out again before the work of its
// last owner is done.
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
  ~CudaMemoryPool() override {
    free_kept();
    cudaMemPoolDestroy(pool_);
  }

  void trim() override {
    free_kept();
    stream().synchronize();  // frees that the stream has not reached yet count as in use
    check_cuda(cudaMemPoolTrimTo(pool_, 0), "trimming a memory pool");
  }
  MemoryFigures figures() const override {
    const std::scoped_lock lock(mutex_);
    std::uint64_t reserved = 0;
    check_cuda(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved),
               "asking a memory pool");
    return {in_use_, peak_, static_cast<std::int64_t>(reserved)};
  }

 private:
  Block acquire(std::int64_t bytes) override {
    const std::scoped_lock lock(mutex_);
    if (limit() > 0 && in_use_ + counted_bytes(bytes) > limit()) refuse(bytes, in_use_, "");
    const bool is_kept = bytes <= kKept;
    Block block{nullptr, is_kept ? block_bytes(bytes) : bytes};
    std::vector<std::byte*>* const kept = is_kept ? &kept_[block.capacity] : nullptr;
    if (kept != nullptr && !kept->empty()) {
      block.data = kept->back();
      kept->pop_back();
      kept_bytes_ -= block.capacity;
    } else {
      block.data = from_driver(bytes, block.capacity);
    }
    in_use_ += counted_bytes(bytes);
    peak_ = std::max(peak_, in_use_);
    return block;
  }
  void release(Block block, std::int64_t bytes) noexcept override {
    {
      const std::scoped_lock lock(mutex_);
      in_use_ -= counted_bytes(bytes);
      if (bytes <= kKept && kept_bytes_ + block.capacity <= kMostKept) {
        kept_[block.capacity].push_back(block.data);
        kept_bytes_ += block.capacity;
        return;
      }
    }
    hand_over();
    cudaFreeAsync(block.data, stream().cuda_for_launches());
  }
  // Launches that use the memory come first. Called without the lock, as it waits for another thread.
  void hand_over() noexcept {
    try {
      stream().hand_over();
    } catch (...) {  // the next one fails too
    }
  }
  std::byte* from_driver(std::int64_t bytes, std::int64_t capacity) {
    void* data = nullptr;
    // Launches that are kept back come later on the stream than the memory that they use.
    const cudaError_t status = cudaMallocFromPoolAsync(&data, static_cast<std::size_t>(capacity), pool_,
                                                       stream().cuda_for_launches());
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // or the next launch would report it
      refuse(bytes, in_use_, "and the GPU has no more");
    }
    check_cuda(status, "allocating GPU memory");
    return static_cast<std::byte*>(data);
  }
  void free_kept() noexcept {
    std::map<std::int64_t, std::vector<std::byte*>> kept;
    {
      const std::scoped_lock lock(mutex_);
      kept.swap(kept_);
      kept_bytes_ = 0;
    }
    hand_over();
    for (const auto& [capacity, blocks] : kept) {
      for (std::byte* const data : blocks) cudaFreeAsync(data, stream().cuda_for_launches());
    }
  }

  cudaMemPool_t pool_ = nullptr;
  mutable std::mutex mutex_;
  std::int64_t in_use_ = 0, peak_ = 0, kept_bytes_ = 0;
  std::map<std::int64_t, std::vector<std::byte*>> kept_;  // unused blocks by capacity
};

}  // namespace

std::shared_ptr<MemoryPool> new_pool(const Stream& stream, std::int64_t limit) {
  return std::make_shared<CudaMemoryPool>(stream, limit);
}

}  // namespace hstu::cuda
