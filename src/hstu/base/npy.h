// NumPy .npy files (format 1.0, little-endian, C order, 128-byte header): one column per file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/files.h"

namespace hstu {

// NumPy's type string of T ("<i8", "<f4", "|u1", ...).
template <typename T>
constexpr const char* npy_type();
template <>
constexpr const char* npy_type<std::int64_t>() {
  return "<i8";
}
template <>
constexpr const char* npy_type<std::int32_t>() {
  return "<i4";
}
template <>
constexpr const char* npy_type<std::uint64_t>() {
  return "<u8";
}
template <>
constexpr const char* npy_type<std::uint32_t>() {
  return "<u4";
}
template <>
constexpr const char* npy_type<std::uint16_t>() {
  return "<u2";
}
template <>
constexpr const char* npy_type<std::uint8_t>() {
  return "|u1";
}
template <>
constexpr const char* npy_type<std::int8_t>() {
  return "|i1";
}
template <>
constexpr const char* npy_type<bool>() {
  return "|b1";
}
template <>
constexpr const char* npy_type<float>() {
  return "<f4";
}
template <>
constexpr const char* npy_type<double>() {
  return "<f8";
}

struct NpyHeader {
  std::string type;                 // NumPy's type string
  std::vector<std::int64_t> shape;  // C order
  std::size_t data_offset = 0;      // where the elements begin, bytes

  std::int64_t count() const;
};

// The header's bytes, padded to 128 (more only for shapes with very many dimensions).
std::string npy_header(const std::string& type, std::span<const std::int64_t> shape);

// Reads and checks a header; `path` only names the file in errors. Throws Error for anything that NumPy would
// not write or that contradicts the file's size.
NpyHeader parse_npy_header(std::span<const std::byte> file, const Path& path);

// Appends elements to a one-dimensional column; the count in the header is set by close().
template <typename T>
class NpyWriter {
 public:
  explicit NpyWriter(const Path& path) : file_(path) { file_.write(header()); }
  void append(const T& value) { append(std::span<const T>(&value, 1)); }
  void append(std::span<const T> values) {
    file_.write(values.data(), values.size_bytes());
    count_ += static_cast<std::int64_t>(values.size());
  }
  void close() {
    const std::string text = header();
    file_.overwrite(0, text.data(), text.size());
    file_.close();
  }
  std::int64_t count() const { return count_; }

 private:
  std::string header() const { return npy_header(npy_type<T>(), std::span<const std::int64_t>(&count_, 1)); }

  OutputFile file_;
  std::int64_t count_ = 0;
};

template <typename T>
void write_npy(const Path& path, std::span<const T> values) {
  NpyWriter<T> writer(path);
  writer.append(values);
  writer.close();
}
template <typename T>
void write_npy(const Path& path, const std::vector<T>& values) {
  write_npy<T>(path, std::span<const T>(values));
}

// A one-dimensional column mapped from disk.
template <typename T>
class NpyColumn {
 public:
  explicit NpyColumn(const Path& path) : file_(path), header_(parse_npy_header(file_.bytes(), path)) {
    check(header_.type == npy_type<T>(), "{}: expected elements of type {}, found {}", path.string(),
          npy_type<T>(), header_.type);
    check(header_.shape.size() == 1, "{}: expected one dimension, found {}", path.string(),
          header_.shape.size());
  }
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(file_.bytes().data() + header_.data_offset),
            static_cast<std::size_t>(header_.count())};
  }
  const T& operator[](std::int64_t i) const { return values()[static_cast<std::size_t>(i)]; }
  std::int64_t size() const { return header_.count(); }

 private:
  MappedFile file_;
  NpyHeader header_;
};

}  // namespace hstu
