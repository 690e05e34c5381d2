// Writes an integer column of a dataset sequentially, in the narrowest type that can represent all values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "hstu/base/checksum.h"
#include "hstu/base/files.h"
#include "hstu/dataset/integer_column.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

// A .npy file of type |u1, <u2, <u4 or <i8. It starts as `narrowest`; if a value does not fit, the elements
// so far are written again in the next sufficient type. Checksum and range are computed while writing, so the
// finished file is not read again. Throws Error naming the file that cannot be written.
class ColumnWriter {
 public:
  using Width = IntegerColumn::Width;

  ColumnWriter(Path path, Width narrowest);
  void append(const IntegerColumn& values);
  void append(std::span<const std::uint8_t> values);
  void append(std::span<const std::int64_t> values);
  std::int64_t count() const { return count_; }
  // Ends the file. Nothing can be appended after it.
  ColumnInfo close();

 private:
  template <typename T>
  void append_typed(std::span<const T> values);
  template <typename To, typename From>
  void write_as(std::span<const From> values);
  void write(const void* elements, std::size_t bytes);
  void open(const Path& path, Width width);
  void finish_file();
  void widen(Width width);
  void copy_elements(const Path& narrow, Width old_width);

  Path path_;
  Width width_;
  std::unique_ptr<OutputFile> file_;
  std::unique_ptr<Checksum> checksum_;
  std::int64_t count_ = 0;
  std::optional<std::int64_t> min_, max_;
};

}  // namespace hstu
