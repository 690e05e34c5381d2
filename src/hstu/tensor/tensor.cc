#include "hstu/tensor/tensor.h"

#include <functional>
#include <numeric>
#include <utility>

#include <fmt/ranges.h>

namespace hstu {
namespace {

std::int64_t product(Shape::const_iterator begin, Shape::const_iterator end) {
  return std::accumulate(begin, end, std::int64_t{1}, std::multiplies<>());
}

// The number of elements. Sizes come from configurations: their product may be more than any memory holds.
std::int64_t elements_of(const Shape& shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 56;  // so that a number of bytes does not overflow either
  for (const std::int64_t extent : shape)
    require(extent >= 0, "expected extents >= 0, found {}", ShapeText{shape});
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    const bool fits = !__builtin_mul_overflow(elements, extent, &elements) && elements <= kMost;
    check(
        fits,
        "a tensor of shape {} does not fit into any memory: make the model, the batch or the history smaller",
        ShapeText{shape});
  }
  return elements;
}

}  // namespace

std::string to_string(DType type) {
  return word_of(kDTypes, type);
}

std::string to_string(const Shape& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

Tensor Tensor::view(Shape shape, DType type, void* data, std::shared_ptr<const void> owner, Device device) {
  require(owner != nullptr, "a view of memory needs its owner");
  Tensor tensor;
  tensor.size_ = elements_of(shape);
  tensor.shape_ = shape;
  tensor.dtype_ = type;
  tensor.device_ = device;
  tensor.data_ = static_cast<std::byte*>(data);
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::empty(Shape shape, DType type, const Context& context) {
  const std::int64_t elements = elements_of(shape);
  auto buffer = std::make_shared<const Buffer>(
      context.memory->allocate(elements * static_cast<std::int64_t>(size_of(type))));
  std::byte* const data = buffer->data();
  return view(shape, type, data, std::move(buffer), context.memory->device());
}

Tensor Tensor::zeros(Shape shape, DType type, const Context& context) {
  Tensor tensor = empty(shape, type, context);
  tensor.fill_zero(context.stream);
  return tensor;
}

std::int64_t Tensor::cols_of_shape() const {
  return shape_.empty() ? 1 : product(shape_.begin() + 1, shape_.end());
}

void Tensor::refuse_type(DType asked) const {
  throw InternalError(fmt::format("expected a tensor of {}, found {}", to_string(asked), to_string(dtype_)));
}

void Tensor::check_stream(const Stream& stream) const {
  require(stream.device() == device_, "expected a stream of {}, found one of {}", device_, stream.device());
}

Tensor Tensor::row_range(std::int64_t begin, std::int64_t end) const {
  require(0 <= begin && begin <= end && end <= rows(), "expected rows within [0, {}), found [{}, {})", rows(),
          begin, end);
  Tensor result = *this;
  result.data_ += static_cast<std::size_t>(begin * cols_of_shape()) * size_of(dtype_);
  result.shape_.front() = end - begin;
  result.size_ = (end - begin) * cols_of_shape();
  return result;
}

Tensor Tensor::reshaped(Shape shape) const {
  require(product(shape.begin(), shape.end()) == size_, "cannot view {} as {}", ShapeText{shape_},
          ShapeText{shape});
  Tensor result = *this;
  result.shape_ = shape;
  return result;
}

Tensor Tensor::copy(const Context& context) const {
  Tensor result = empty(shape_, dtype_, context);
  result.copy_from(*this, context.stream);
  return result;
}

Tensor Tensor::to_host(const Stream& stream) const {
  if (device_.is_host()) return *this;
  check_stream(stream);
  Tensor result = empty(shape_, dtype_);
  copy_bytes(result.data_, data_, bytes(), stream);
  stream.synchronize();
  return result;
}

void Tensor::copy_from(const Tensor& other, const Stream& stream) {
  check_stream(stream);
  require(other.shape_ == shape_ && other.dtype_ == dtype_, "cannot copy {} {} into {} {}", other.dtype_,
          ShapeText{other.shape_}, dtype_, ShapeText{shape_});
  require(other.device_ == device_ || other.device_.is_host(), "cannot copy from {} to {}", other.device_,
          device_);
  copy_bytes(data_, other.data_, bytes(), stream);
}

void Tensor::fill_zero(const Stream& stream) {
  check_stream(stream);
  set_zero(data_, bytes(), stream);
}

}  // namespace hstu
