// Tensor: memory on a device, a shape, a type. Contiguous, cheap to copy (copies share the memory), views by
// row range.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/tensor/context.h"
#include "hstu/tensor/dtype.h"
#include "hstu/tensor/shape.h"

namespace hstu {

class Tensor {
 public:
  Tensor() = default;  // no memory; defined() is false
  // Uninitialised elements, on the context's device. Throws OutOfMemory.
  static Tensor empty(Shape shape, DType type, const Context& context = host_context());
  static Tensor zeros(Shape shape, DType type, const Context& context = host_context());
  // On the host.
  template <typename T>
  static Tensor from(const Shape& shape, const std::vector<T>& values);
  // Memory of another owner: `owner` keeps it alive, `data` holds the elements on `device`.
  static Tensor view(Shape shape, DType type, void* data, std::shared_ptr<const void> owner,
                     Device device = Device::host());

  bool defined() const { return owner_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  std::int64_t size() const { return size_; }                                // number of elements
  std::int64_t rows() const { return shape_.empty() ? 1 : shape_.front(); }  // first extent
  std::int64_t cols() const {
    return rows() == 0 ? cols_of_shape() : size_ / rows();
  }  // product of the others
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * size_of(dtype_); }

  // Addresses on device(). Throws InternalError when T is not dtype().
  template <typename T>
  const T* data() const {
    if (dtype_ != dtype_of<T>()) refuse_type(dtype_of<T>());
    return reinterpret_cast<const T*>(data_);
  }
  template <typename T>
  T* mutable_data() {
    if (dtype_ != dtype_of<T>()) refuse_type(dtype_of<T>());
    return reinterpret_cast<T*>(data_);
  }
  const std::byte* raw() const { return data_; }
  std::byte* mutable_raw() { return data_; }

  // Rows [begin, end) of the same memory.
  Tensor row_range(std::int64_t begin, std::int64_t end) const;
  // The same elements under another shape of equal size.
  Tensor reshaped(Shape shape) const;

  // The same elements in new memory on the context's device, copied on its stream; this tensor is on the host
  // or on that device.
  Tensor copy(const Context& context = host_context()) const;
  // The same elements on the host, ready to be read: waits for `stream`, which has computed this tensor. A
  // tensor of the host is returned as it is.
  Tensor to_host(const Stream& stream) const;
  // Both are put on the stream, which is of device().
  void copy_from(const Tensor& other,
                 const Stream& stream = {});  // same shape and type; it may be on the host
  void fill_zero(const Stream& stream = {});

 private:
  std::int64_t cols_of_shape() const;
  [[noreturn]] void refuse_type(DType asked) const;
  void check_stream(const Stream& stream) const;

  std::shared_ptr<const void> owner_;
  std::byte* data_ = nullptr;
  std::int64_t size_ = 0;
  Shape shape_;
  DType dtype_ = DType::f32;
  Device device_;
};

template <typename T>
Tensor Tensor::from(const Shape& shape, const std::vector<T>& values) {
  Tensor tensor = empty(shape, dtype_of<T>());
  require(tensor.size() == static_cast<std::int64_t>(values.size()), "expected {} values, found {}",
          tensor.size(), values.size());
  std::copy(values.begin(), values.end(), tensor.mutable_data<T>());
  return tensor;
}

}  // namespace hstu
