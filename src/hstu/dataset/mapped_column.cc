#include "hstu/dataset/mapped_column.h"

#include "hstu/base/npy.h"

namespace hstu {

MappedColumn::Kind MappedColumn::kind_of(const std::string& type, const Path& path) {
  if (type == "|u1" || type == "|b1") return Kind::u1;
  if (type == "|i1") return Kind::i1;
  if (type == "<u2") return Kind::u2;
  if (type == "<u4") return Kind::u4;
  check(type == "<i8", "{}: expected elements of type |u1, |i1, |b1, <u2, <u4 or <i8, found {}",
        path.string(), type);
  return Kind::i8;
}

MappedColumn::MappedColumn(const Path& path) : file_(path) {
  const NpyHeader header = parse_npy_header(file_.bytes(), path);
  kind_ = kind_of(header.type, path);
  check(header.shape.size() == 1, "{}: expected one dimension, found {}", path.string(), header.shape.size());
  check(header.data_offset % sizeof(std::int64_t) == 0,
        "{}: its header has {} bytes, which is not a multiple of 8; save it again with numpy.save",
        path.string(), header.data_offset);
  type_ = header.type;
  data_ = file_.bytes().data() + header.data_offset;
  size_ = header.count();
}

}  // namespace hstu
