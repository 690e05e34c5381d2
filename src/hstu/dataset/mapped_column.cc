#include "hstu/dataset/mapped_column.h"

#include <algorithm>

#include "hstu/base/mapped_space.h"
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

MappedColumn MappedColumn::bits_of(const Path& path, const std::string& type) {
  return {path, type};
}

MappedColumn::MappedColumn(const Path& path, const std::string& bits) : path_(path) {
  const auto file = std::make_shared<MappedFile>(path);
  const NpyHeader header = parse_npy_header(file->bytes(), path);
  check(bits.empty() || header.type == bits, "{}: expected elements of type {}, found {}", path.string(),
        bits, header.type);
  kind_ = bits.empty() ? kind_of(header.type, path) : Kind::u4;
  check(header.shape.size() == 1, "{}: expected one dimension, found {}", path.string(), header.shape.size());
  check(header.data_offset % sizeof(std::int64_t) == 0,
        "{}: its header has {} bytes, which is not a multiple of 8; save it again with numpy.save",
        path.string(), header.data_offset);
  type_ = header.type;
  header_ = header.data_offset;
  data_ = file->bytes().data() + header_;
  size_ = header.count();
  memory_ = file;
}

MappedColumn::MappedColumn(const std::vector<MappedColumn>& parts, const std::vector<std::int64_t>& first,
                           std::int64_t size)
    : size_(size) {
  const MappedColumn& model = parts.front();
  const bool alike = std::all_of(parts.begin(), parts.end(), [&](const MappedColumn& part) {
    return part.type_ == model.type_ && part.header_ == model.header_;
  });
  if (alike) {
    type_ = model.type_;
    kind_ = model.kind_;
    const std::size_t width = model.visit([](const auto* elements) { return sizeof(*elements); });
    const auto space = std::make_shared<MappedSpace>(static_cast<std::size_t>(size) * width, model.header_);
    for (std::size_t s = 0; s < parts.size(); ++s)
      space->map(parts[s].path_, static_cast<std::size_t>(first[s]) * width);
    data_ = space->bytes().data();
    memory_ = space;
    return;
  }
  type_ = "<i8";
  kind_ = Kind::i8;
  const auto copy = std::make_shared<MemoryFile>(static_cast<std::size_t>(size) * sizeof(std::int64_t));
  auto* const elements = reinterpret_cast<std::int64_t*>(copy->bytes().data());
  for (std::size_t s = 0; s < parts.size(); ++s) {
    parts[s].visit([&](const auto* values) {
      for (std::int64_t i = 0; i < parts[s].size(); ++i)
        elements[first[s] + i] = +values[i];  // + widens: an i1 is a number here, not a character
    });
  }
  data_ = copy->bytes().data();
  memory_ = copy;
}

}  // namespace hstu
