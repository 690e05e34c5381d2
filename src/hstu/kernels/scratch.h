// Memory for a while: not initialised, aligned to 64 bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

namespace hstu::kernels {

template <typename T>
class Scratch {
 public:
  explicit Scratch(std::int64_t count)
      : data_(static_cast<T*>(::operator new(static_cast<std::size_t>(count) * sizeof(T), kAlignment))) {}
  T* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(T* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<T, Free> data_;
};

}  // namespace hstu::kernels
