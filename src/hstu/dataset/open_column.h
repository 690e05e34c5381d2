// Opens columns of a dataset after comparing them with the manifest.
#pragma once

#include <string>
#include <string_view>

#include "hstu/base/npy.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/mapped_column.h"

namespace hstu {

// The file of a column, after comparing its size with the manifest: a truncated copy is detected before it is
// mapped. Throws Error naming the file.
Path column_file(const Path& folder, const Manifest& manifest, const std::string& file);

// Throws Error unless the file's type and number of elements are those of the manifest.
void expect_fit(const Path& path, const ColumnInfo& column, std::string_view type, std::int64_t count);

template <typename T>
NpyColumn<T> open_column(const Path& folder, const Manifest& manifest, const std::string& file) {
  const Path path = column_file(folder, manifest, file);
  NpyColumn<T> column(path);
  expect_fit(path, manifest.columns.at(file), npy_type<T>(), column.size());
  return column;
}

// A column of integers of any width.
MappedColumn open_integers(const Path& folder, const Manifest& manifest, const std::string& file);

}  // namespace hstu
