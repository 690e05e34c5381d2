#include "hstu/tensor/tensor.h"

#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/ranges.h>

#include "hstu/tensor/buffer_pool.h"

namespace hstu {
namespace {

std::int64_t product(Shape::const_iterator begin, Shape::const_iterator end) {
  return std::accumulate(begin, end, std::int64_t{1}, std::multiplies<>());
}

}  // namespace

std::string to_string(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
  }
  return "?";
}

std::string to_string(const Shape& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

Tensor::Buffer::Buffer(std::size_t bytes) : data(acquire_buffer(bytes, &capacity)) {}
Tensor::Buffer::~Buffer() {
  release_buffer(data, capacity);
}

Tensor Tensor::empty(Shape shape, DType type) {
  Tensor tensor;
  for (const std::int64_t extent : shape)
    require(extent >= 0, "expected extents >= 0, found {}", to_string(shape));
  tensor.size_ = product(shape.begin(), shape.end());
  tensor.shape_ = std::move(shape);
  tensor.dtype_ = type;
  tensor.buffer_ = std::make_shared<Buffer>(tensor.bytes());
  return tensor;
}

Tensor Tensor::zeros(Shape shape, DType type) {
  Tensor tensor = empty(std::move(shape), type);
  tensor.fill_zero();
  return tensor;
}

std::int64_t Tensor::cols_of_shape() const {
  return shape_.empty() ? 1 : product(shape_.begin() + 1, shape_.end());
}

void Tensor::refuse_type(DType asked) const {
  throw InternalError(fmt::format("expected a tensor of {}, found {}", to_string(asked), to_string(dtype_)));
}

Tensor Tensor::row_range(std::int64_t begin, std::int64_t end) const {
  require(0 <= begin && begin <= end && end <= rows(), "expected rows within [0, {}), found [{}, {})", rows(),
          begin, end);
  Tensor view = *this;
  view.offset_ += static_cast<std::size_t>(begin * cols_of_shape()) * size_of(dtype_);
  view.shape_.front() = end - begin;
  view.size_ = (end - begin) * cols_of_shape();
  return view;
}

Tensor Tensor::reshaped(Shape shape) const {
  require(product(shape.begin(), shape.end()) == size_, "cannot view {} as {}", to_string(shape_),
          to_string(shape));
  Tensor view = *this;
  view.shape_ = std::move(shape);
  return view;
}

Tensor Tensor::copy() const {
  Tensor result = empty(shape_, dtype_);
  if (size_ > 0) std::memcpy(result.raw(), raw(), bytes());
  return result;
}

void Tensor::fill_zero() const {
  if (size_ > 0) std::memset(raw(), 0, bytes());
}

}  // namespace hstu
