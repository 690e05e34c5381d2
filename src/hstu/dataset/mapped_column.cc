#include "hstu/dataset/mapped_column.h"

#include "hstu/base/npy.h"

namespace hstu {

MappedColumn::MappedColumn(const Path& path) : file_(path) {
  const NpyHeader header = parse_npy_header(file_.bytes(), path);
  if (header.type == "|u1") bytes_ = 1;
  if (header.type == "<u2") bytes_ = 2;
  if (header.type == "<u4") bytes_ = 4;
  if (header.type == "<i8") bytes_ = 8;
  check(bytes_ != 0, "{}: expected elements of type |u1, <u2, <u4 or <i8, found {}", path.string(),
        header.type);
  check(header.shape.size() == 1, "{}: expected one dimension, found {}", path.string(), header.shape.size());
  type_ = header.type;
  data_ = file_.bytes().data() + header.data_offset;
  size_ = header.count();
}

}  // namespace hstu
