// RowStorage: rows of `width` floats in chunks with constant addresses, so growth copies nothing and only
// existing rows take memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <memory_resource>
#include <vector>

#include "hstu/base/threads.h"

namespace hstu {

// Rows a block of work of one thread: about 64 KiB of rows of `width` floats.
constexpr std::int64_t row_grain(std::int64_t width) {
  return std::max<std::int64_t>(16, 16384 / width);
}
// body(i) for i = 0 .. n - 1, by all threads, each of which works on rows of `width` floats.
template <typename Body>
void for_rows(std::size_t n, std::int64_t width, const Body& body) {
  parallel_blocks(static_cast<std::int64_t>(n), row_grain(width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(static_cast<std::size_t>(i));
  });
}

// Gives the memory of a chunk back; to the heap, unless it is `from` a resource.
struct FreeChunk {
  std::pmr::memory_resource* from = nullptr;
  std::size_t bytes = 0;
  void operator()(float* memory) const {
    if (from != nullptr)
      from->deallocate(memory, bytes);
    else
      std::free(memory);  // NOLINT: the counterpart of aligned_alloc.
  }
};

class RowStorage {
 public:
  // A chunk has 2^shift rows of `width` floats, in at most `chunk_bytes` if that is more than a row.
  static constexpr int chunk_shift(std::int64_t width, std::int64_t chunk_bytes) {
    int shift = 0;
    while (width > 0 && (width * std::int64_t{sizeof(float)} << (shift + 1)) <= chunk_bytes) ++shift;
    return shift;
  }

  // Rows begin as zeros, in ordinary memory.
  explicit RowStorage(std::int64_t width, std::int64_t chunk_bytes = std::int64_t{1} << 20);
  // At most `most_rows` rows, which begin with any values, from `memory`, which may be slow to get: a thread
  // gets as many chunks ahead as the last growth took.
  RowStorage(std::int64_t width, std::pmr::memory_resource* memory, std::int64_t chunk_bytes,
             std::int64_t most_rows);

  // Creates the missing rows of [0, rows). Throws Error if memory is exhausted.
  void grow(std::int64_t rows);

  // Row `slot`, `width` floats; nullptr if the width is 0.
  float* row(std::int64_t slot) {
    return width_ == 0 ? nullptr : chunks_[chunk_of(slot)].get() + (slot & mask_) * width_;
  }
  const float* row(std::int64_t slot) const {
    return width_ == 0 ? nullptr : chunks_[chunk_of(slot)].get() + (slot & mask_) * width_;
  }

  std::int64_t width() const { return width_; }
  std::int64_t bytes() const;  // without chunks that are ahead of their rows

 private:
  using Chunks = std::vector<std::unique_ptr<float[], FreeChunk>>;
  std::size_t chunk_of(std::int64_t slot) const { return static_cast<std::size_t>(slot >> shift_); }
  std::int64_t chunk_bytes() const;
  std::future<Chunks> more_chunks(std::size_t n, std::launch when) const;
  void grow_from_memory(std::size_t needed);
  [[noreturn]] void fail_memory(const char* why) const;

  std::int64_t width_;
  std::pmr::memory_resource* memory_ = nullptr;
  int shift_ = 0;  // a chunk holds 2^shift_ rows
  std::int64_t mask_ = 0;
  Chunks chunks_;
  // From `memory`: chunks at most, those that were needed, and of these those that the last growth added.
  std::size_t most_ = 0, needed_ = 0, growth_ = 0;
  std::future<Chunks> ahead_;
};

}  // namespace hstu
