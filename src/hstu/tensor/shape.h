// Shape: the extents of a tensor, in place: tensors are copied many times a step, and a copy must not
// allocate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "hstu/base/error.h"

namespace hstu {

class Shape {
 public:
  static constexpr std::size_t kMostExtents = 4;
  using value_type = std::int64_t;
  using iterator = const std::int64_t*;
  using const_iterator = iterator;

  Shape() = default;  // of a scalar
  Shape(std::initializer_list<std::int64_t> extents) {
    for (const std::int64_t extent : extents) push_back(extent);
  }

  void push_back(std::int64_t extent) {
    require(size_ < kMostExtents, "expected at most {} extents", kMostExtents);
    extents_[size_++] = extent;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const_iterator begin() const { return extents_.data(); }
  const_iterator end() const { return extents_.data() + size_; }
  std::int64_t front() const { return extents_[0]; }  // 0 of a scalar
  std::int64_t& front() { return extents_[0]; }
  std::int64_t back() const { return extents_[size_ - 1]; }
  std::int64_t operator[](std::size_t i) const { return extents_[i]; }

  bool operator==(const Shape&) const = default;  // unused extents are 0

 private:
  std::array<std::int64_t, kMostExtents> extents_{};
  std::size_t size_ = 0;
};

std::string to_string(const Shape& shape);

// A shape as an argument of messages.
struct ShapeText {
  const Shape& shape;
};
inline std::string to_string(const ShapeText& text) {
  return to_string(text.shape);
}

}  // namespace hstu

template <>
struct fmt::formatter<hstu::ShapeText> : hstu::ToStringFormatter<hstu::ShapeText> {};
