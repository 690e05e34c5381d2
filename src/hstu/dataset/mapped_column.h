// A column of integers of any width, mapped from disk and read as 64-bit integers.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/npy.h"

namespace hstu {

// One-dimensional .npy column of type |u1, |i1, |b1, <u2, <u4 or <i8.
class MappedColumn {
 public:
  // Throws Error naming the file if it is missing, truncated, or of another type or shape.
  explicit MappedColumn(const Path& path) : MappedColumn(path, std::string()) {}
  // A file of another type of 4 bytes, such as <f4, as the integers of 32 bits that its elements have.
  static MappedColumn bits_of(const Path& path, const std::string& type);
  // One column of the columns of several segments: the elements of part s are at [first[s], ...) of `size`,
  // and nothing is between. It is mapped, unless the parts have several types: then its elements are copied
  // into memory, 8 bytes each.
  MappedColumn(const std::vector<MappedColumn>& parts, const std::vector<std::int64_t>& first,
               std::int64_t size);
  // Elements in the caller's memory, which must outlive the column.
  template <typename T>
  explicit MappedColumn(std::span<const T> elements)
      : type_(npy_type<T>()),
        data_(reinterpret_cast<const std::byte*>(elements.data())),
        size_(static_cast<std::int64_t>(elements.size())),
        kind_(kind_of(type_, {})) {}

  // visitor(const T* elements), T of the file's width. Booleans are read as bytes of 0 and 1.
  template <typename Visitor>
  auto visit(const Visitor& visitor) const {
    switch (kind_) {
      case Kind::u4:
        return visitor(elements<std::uint32_t>());
      case Kind::u1:
        return visitor(elements<std::uint8_t>());
      case Kind::i1:
        return visitor(elements<std::int8_t>());
      case Kind::u2:
        return visitor(elements<std::uint16_t>());
      case Kind::i8:
        break;
    }
    return visitor(elements<std::int64_t>());
  }
  // Use visit() in loops over many elements: it examines the type once.
  std::int64_t operator[](std::int64_t i) const {
    return visit([i](const auto* elements) { return static_cast<std::int64_t>(elements[i]); });
  }
  std::int64_t size() const { return size_; }
  const std::string& type() const { return type_; }  // NumPy's type string

 private:
  // `bits`: the type whose elements are read as integers of 32 bits; "": integers alone.
  MappedColumn(const Path& path, const std::string& bits);
  static_assert(std::endian::native == std::endian::little, "columns are little-endian and read in place");

  enum class Kind { u1, i1, u2, u4, i8 };
  static Kind kind_of(const std::string& type, const Path& path);

  // Aligned, because files are mapped at page boundaries and the length of the header is checked.
  template <typename T>
  const T* elements() const {
    return reinterpret_cast<const T*>(data_);
  }

  Path path_;               // of one file
  std::size_t header_ = 0;  // its bytes before the elements
  std::shared_ptr<const void> memory_;
  std::string type_;
  const std::byte* data_ = nullptr;
  std::int64_t size_ = 0;
  Kind kind_ = Kind::u1;
};

}  // namespace hstu
