#include "hstu/device/pinned_memory.h"

#include <cstddef>

#include "hstu/device/cuda_calls.h"

namespace hstu {
namespace {

class PinnedMemory final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t) override {  // CUDA aligns to a page
    return cuda::allocate_pinned(bytes);
  }
  void do_deallocate(void* memory, std::size_t, std::size_t) override { cuda::free_pinned(memory); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace

std::pmr::memory_resource* transfer_memory(Device device) {
  static auto* const pinned = new PinnedMemory;  // never destroyed: what it gave may end last
  return device.is_host() ? std::pmr::new_delete_resource() : pinned;
}

}  // namespace hstu
