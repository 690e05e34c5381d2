#include "hstu/dataset/open_column.h"

#include "hstu/base/error.h"
#include "hstu/base/files.h"

namespace hstu {

Path column_file(const Path& folder, const Manifest& manifest, const std::string& file) {
  const ColumnInfo& column = manifest.columns.at(file);
  Path path = folder / file;
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (std::error_code ignored;
      error && std::filesystem::is_symlink(path, ignored) && !std::filesystem::exists(path, ignored))
    check_input_file(path);  // says where the link leads
  check(!error, "{}: cannot be read ({}), although {} lists it: copy or prepare the dataset again",
        path.string(), error.message(), kManifestFile);
  check(static_cast<std::int64_t>(bytes) == column.bytes,
        "{}: expected {} bytes (from {}), found {}: copy or prepare the dataset again", path.string(),
        column.bytes, kManifestFile, bytes);
  return path;
}

void expect_fit(const Path& path, const ColumnInfo& column, std::string_view type, std::int64_t count) {
  check(type == column.type, "{}: expected elements of type {} (from {}), found {}", path.string(),
        column.type, kManifestFile, type);
  check(count == column.count, "{}: expected {} elements (from {}), found {}", path.string(), column.count,
        kManifestFile, count);
}

MappedColumn open_integers(const Path& folder, const Manifest& manifest, const std::string& file) {
  const Path path = column_file(folder, manifest, file);
  MappedColumn column(path);
  expect_fit(path, manifest.columns.at(file), column.type(), column.size());
  return column;
}

}  // namespace hstu
