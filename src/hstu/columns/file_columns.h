// The columns of a file, before any of them is chosen.
#pragma once

#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/columns/csv_format.h"

namespace hstu {

struct FileColumn {
  std::string name, type_name;
  bool readable = false;  // open_columns() reads it, whatever it contains
  bool bytes = false;     // if they are UTF-8, which nothing says, open_columns() reads them as texts
  bool operator==(const FileColumn&) const = default;
};

// In the order of the file. Throws Error naming the file if it is not whole.
std::vector<FileColumn> list_columns(const Path& file, const CsvFormat& format = {});

}  // namespace hstu
