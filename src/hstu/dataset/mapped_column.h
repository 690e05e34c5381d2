// A column of integers mapped from disk, of whatever width it was written in, read as 64-bit integers.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "hstu/base/files.h"

namespace hstu {

// One-dimensional .npy column of type |u1, <u2, <u4 or <i8.
class MappedColumn {
 public:
  // Throws Error naming the file when it is missing, torn, or of another type or shape.
  explicit MappedColumn(const Path& path);

  std::int64_t operator[](std::int64_t i) const {
    switch (bytes_) {
      case 4:
        return load<std::uint32_t>(i);
      case 1:
        return load<std::uint8_t>(i);
      case 2:
        return load<std::uint16_t>(i);
      default:
        return load<std::int64_t>(i);
    }
  }
  std::int64_t size() const { return size_; }
  const std::string& type() const { return type_; }  // NumPy's type string

 private:
  static_assert(std::endian::native == std::endian::little, "columns are little-endian and read in place");

  template <typename T>
  std::int64_t load(std::int64_t i) const {
    T value;
    std::memcpy(&value, data_ + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    return static_cast<std::int64_t>(value);
  }

  MappedFile file_;
  std::string type_;
  const std::byte* data_ = nullptr;
  std::int64_t size_ = 0;
  int bytes_ = 0;  // of one element
};

}  // namespace hstu
