// Segments: an array that grows by segments of constant addresses, so that growth copies nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hstu {

template <typename T>
class Segments {
 public:
  static constexpr std::int64_t kElements = 1 << 12;  // of a segment

  T& operator[](std::int64_t i) { return segments_[static_cast<std::size_t>(i / kElements)][i % kElements]; }
  const T& operator[](std::int64_t i) const {
    return segments_[static_cast<std::size_t>(i / kElements)][i % kElements];
  }
  // Room for `elements` at least; new ones have T's default value.
  void grow(std::int64_t elements) {
    while (static_cast<std::int64_t>(segments_.size()) * kElements < elements)
      segments_.push_back(std::make_unique<T[]>(kElements));
  }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(segments_.size()) * kElements * static_cast<std::int64_t>(sizeof(T));
  }

 private:
  std::vector<std::unique_ptr<T[]>> segments_;
};

}  // namespace hstu
