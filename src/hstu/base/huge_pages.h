// Large arrays that are read at random places, in pages of 2 MiB where the system has them: most reads of 4
// KiB pages would also miss the processor's table of pages.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include <sys/mman.h>

namespace hstu {

template <typename T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <typename U>
  HugePageAllocator(const HugePageAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(std::size_t n) {
    if (n * sizeof(T) < kLeast) return std::allocator<T>().allocate(n);
    const std::size_t bytes = (n * sizeof(T) + kPage - 1) / kPage * kPage;
    void* const memory = std::aligned_alloc(kPage, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: without it the array is only slower
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t n) {
    if (n * sizeof(T) < kLeast) return std::allocator<T>().deallocate(memory, n);
    std::free(memory);  // NOLINT: the counterpart of aligned_alloc
  }
  template <typename U>
  bool operator==(const HugePageAllocator<U>&) const {
    return true;
  }

 private:
  static constexpr std::size_t kPage = std::size_t{2} << 20, kLeast = 4 * kPage;
};

template <typename T>
using HugePageVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace hstu
