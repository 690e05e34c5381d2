// Safetensors: named tensors in one file. 8 bytes little-endian length N, N bytes of JSON header, then the
// data without gaps. Format: https://github.com/huggingface/safetensors#format
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "hstu/base/checksum.h"
#include "hstu/base/files.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

// Writes a file sequentially without holding it in memory. The bytes are a pure function of the arguments.
class SafetensorsWriter {
 public:
  // Data must follow in the order of `tensors`, which descend in element size, so that each is aligned.
  SafetensorsWriter(const Path& path, const std::vector<TensorSpec>& tensors);

  // Writes the next `size` bytes of data; a tensor may come in several calls. Throws Error naming the file.
  void write(const void* data, std::size_t size);
  void write(const Tensor& tensor) { write(tensor.raw(), tensor.bytes()); }
  // Flushes and fsyncs. Throws InternalError if the bytes written are fewer or more than the tensors hold.
  void close();

  std::uint64_t bytes() const { return file_.size(); }
  // Checksum of all bytes written, equal to file_checksum() of the file.
  std::string checksum() const { return checksum_.text(); }

 private:
  OutputFile file_;
  Checksum checksum_;
  std::uint64_t expected_bytes_ = 0;
};

// A file mapped into memory. Opening checks the whole header: sizes, offsets, no gap, no overlap, no trailing
// bytes. Throws Error naming the file and the defect.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const Path& path);

  const std::vector<TensorSpec>& tensors() const { return tensors_; }  // by offset in the file

  // Throws Error unless the file holds exactly these tensors, in any order.
  void expect(const std::vector<TensorSpec>& tensors) const;

  // The elements of tensor `name`. Throws Error unless it exists with this type and shape.
  template <typename T>
  std::span<const T> values(const std::string& name, const Shape& shape) const {
    const std::span<const std::byte> bytes = find(name, dtype_of<T>(), shape);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  // The elements of the one-dimensional tensor `name`, of any length. Throws Error unless it exists with this
  // type and one dimension.
  template <typename T>
  std::span<const T> column(const std::string& name) const {
    return values<T>(name, {rows(name)});
  }
  // Copies tensor `name` into `tensor`, under the same conditions as values().
  void read(const std::string& name, Tensor& tensor, const Stream& stream = {}) const;

 private:
  struct Data {
    std::size_t spec;
    std::span<const std::byte> bytes;
  };
  std::span<const std::byte> find(const std::string& name, DType dtype, const Shape& shape) const;
  // The first extent of a tensor; 0 if the tensor does not exist or has no extents.
  std::int64_t rows(const std::string& name) const;

  Path path_;
  MappedFile file_;
  std::vector<TensorSpec> tensors_;
  std::map<std::string, Data> data_;
};

}  // namespace hstu
