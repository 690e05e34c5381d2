#include "hstu/device/pinned_memory.h"

#include <cstddef>
#include <new>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/huge_pages.h"
#include "hstu/device/cuda_calls.h"
#include "hstu/device/memory_pool.h"

namespace hstu {
namespace {

// Blocks of this size and more are huge pages, which are locked many times faster than those of 4 KiB that
// CUDA would get.
constexpr std::size_t kLarge = std::size_t{16} << 20;

class PinnedMemory final : public std::pmr::memory_resource {
 public:
  explicit PinnedMemory(int device) : device_(device) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t) override {  // both are aligned to a page
    cuda::make_current(device_);  // a thread that has worked on no GPU would take the first
    return bytes < kLarge ? cuda::allocate_pinned(bytes) : allocate_large(bytes);
  }
  static void* allocate_large(std::size_t bytes) try {
    std::byte* const memory = HugePageAllocator<std::byte>().allocate(bytes);
    try {
      cuda::pin(memory, bytes);
    } catch (...) {
      HugePageAllocator<std::byte>().deallocate(memory, bytes);
      throw;
    }
    return memory;
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(fmt::format("no host memory for {} bytes", bytes));
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t) override {
    if (bytes < kLarge) return cuda::free_pinned(memory);
    cuda::unpin(memory);
    HugePageAllocator<std::byte>().deallocate(static_cast<std::byte*>(memory), bytes);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  int device_;
};

std::vector<PinnedMemory> one_for_each_gpu() {
  const int devices = cuda_device_count();
  std::vector<PinnedMemory> memory;
  memory.reserve(static_cast<std::size_t>(devices));
  for (int device = 0; device < devices; ++device) memory.emplace_back(device);
  return memory;
}

}  // namespace

std::pmr::memory_resource* transfer_memory(Device device) {
  if (device.is_host()) return std::pmr::new_delete_resource();
  static auto* const of_gpus = new std::vector(one_for_each_gpu());  // what they gave may end last
  return &of_gpus->at(static_cast<std::size_t>(device.index));
}

}  // namespace hstu
