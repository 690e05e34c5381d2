#include "hstu/tensor/buffer_pool.h"

#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <vector>

namespace hstu {
namespace {

// Sizes are rounded up to one of four steps between powers of two, so batches of slightly different length
// meet in the same list; at most a quarter is wasted.
std::size_t rounded(std::size_t bytes) {
  constexpr std::size_t kSmallest = 256;
  if (bytes <= kSmallest) return kSmallest;
  const std::size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

struct Pool {
  std::mutex mutex;
  std::map<std::size_t, std::vector<std::byte*>> free;  // by capacity
};

// Never destroyed: tensors of static lifetime may be released after any other static object is gone.
Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

}  // namespace

std::byte* acquire_buffer(std::size_t bytes, std::size_t* capacity) {
  *capacity = rounded(bytes);
  {
    const std::scoped_lock lock(pool().mutex);
    auto& list = pool().free[*capacity];
    if (!list.empty()) {
      std::byte* const data = list.back();
      list.pop_back();
      return data;
    }
  }
  void* const data = std::aligned_alloc(64, *capacity);
  if (data == nullptr) throw std::bad_alloc();
  return static_cast<std::byte*>(data);
}

void release_buffer(std::byte* data, std::size_t capacity) {
  const std::scoped_lock lock(pool().mutex);
  pool().free[capacity].push_back(data);
}

}  // namespace hstu
