// RowStorage: rows of `width` floats in chunks that never move, so that growth copies nothing and memory is
// taken only for rows that exist.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace hstu {

class RowStorage {
 public:
  explicit RowStorage(std::int64_t width);

  // Makes rows [0, rows) exist; new rows are all zeros. Throws Error when memory runs out.
  void grow(std::int64_t rows);

  // Row `slot`, `width` floats; nullptr when the width is 0.
  float* row(std::int64_t slot) {
    return width_ == 0 ? nullptr : chunks_[chunk_of(slot)].get() + (slot & mask_) * width_;
  }
  const float* row(std::int64_t slot) const {
    return width_ == 0 ? nullptr : chunks_[chunk_of(slot)].get() + (slot & mask_) * width_;
  }

  std::int64_t width() const { return width_; }
  std::int64_t bytes() const;

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }  // NOLINT: the counterpart of aligned_alloc.
  };
  std::size_t chunk_of(std::int64_t slot) const { return static_cast<std::size_t>(slot >> shift_); }
  std::int64_t chunk_bytes() const;

  std::int64_t width_;
  int shift_ = 0;  // a chunk holds 2^shift_ rows
  std::int64_t mask_ = 0;
  std::vector<std::unique_ptr<float[], Free>> chunks_;
};

}  // namespace hstu
