// Tensor: a buffer, a shape, a type. Contiguous, cheap to copy (copies share the buffer), views by row range.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hstu/base/error.h"

namespace hstu {

enum class DType { f32, f64, i32, i64, u8 };

constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::u8:
      return 1;
    case DType::f32:
    case DType::i32:
      return 4;
    default:
      return 8;
  }
}
std::string to_string(DType type);

template <typename T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::u8;
}

using Shape = std::vector<std::int64_t>;
std::string to_string(const Shape& shape);

class Tensor {
 public:
  Tensor() = default;  // no buffer; defined() is false
  // Uninitialised elements.
  static Tensor empty(Shape shape, DType type);
  static Tensor zeros(Shape shape, DType type);
  template <typename T>
  static Tensor from(Shape shape, const std::vector<T>& values);

  bool defined() const { return buffer_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::int64_t size() const { return size_; }                                // number of elements
  std::int64_t rows() const { return shape_.empty() ? 1 : shape_.front(); }  // first extent
  std::int64_t cols() const {
    return rows() == 0 ? cols_of_shape() : size_ / rows();
  }  // product of the others
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * size_of(dtype_); }

  template <typename T>
  T* data() const {
    if (dtype_ != dtype_of<T>()) refuse_type(dtype_of<T>());
    return reinterpret_cast<T*>(raw());
  }
  std::byte* raw() const { return buffer_ ? buffer_->data + offset_ : nullptr; }

  // Rows [begin, end) of the same buffer.
  Tensor row_range(std::int64_t begin, std::int64_t end) const;
  // The same elements under another shape of equal size.
  Tensor reshaped(Shape shape) const;
  Tensor copy() const;
  void fill_zero() const;

 private:
  struct Buffer {
    explicit Buffer(std::size_t bytes);
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    std::byte* data;
    std::size_t capacity;
  };
  std::int64_t cols_of_shape() const;
  [[noreturn]] void refuse_type(DType asked) const;

  std::shared_ptr<Buffer> buffer_;
  std::size_t offset_ = 0;  // bytes
  std::int64_t size_ = 0;
  Shape shape_;
  DType dtype_ = DType::f32;
};

template <typename T>
Tensor Tensor::from(Shape shape, const std::vector<T>& values) {
  Tensor tensor = empty(std::move(shape), dtype_of<T>());
  require(tensor.size() == static_cast<std::int64_t>(values.size()), "expected {} values, found {}",
          tensor.size(), values.size());
  std::copy(values.begin(), values.end(), tensor.data<T>());
  return tensor;
}

}  // namespace hstu
