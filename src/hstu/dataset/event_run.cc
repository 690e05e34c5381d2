#include "hstu/dataset/event_run.h"

#include <array>
#include <utility>
#include <vector>

#include "hstu/base/error.h"

namespace hstu {
namespace {

// Before each column: its width, and its elements.
using ColumnHeader = std::array<std::int64_t, 2>;

}  // namespace

void RunWriter::append(EventTable events) {
  const auto columns = static_cast<std::int64_t>(events.context.size());
  file_.write(&columns, sizeof columns);
  const auto write = [&](const IntegerColumn& column) {
    const ColumnHeader header{static_cast<std::int64_t>(column.width()), column.size()};
    file_.write(header.data(), sizeof header);
    column.visit([&](const auto& values) { file_.write(values.data(), std::span(values).size_bytes()); });
  };
  write(events.user);
  write(events.time);
  write(events.nanoseconds);
  write(events.item);
  for (const IntegerColumn& column : events.context) write(column);
  file_.write(events.action.data(), events.action.size());
}

RunReader::RunReader(Path path, AtEnd at_end)
    : path_(std::move(path)), at_end_(at_end), input_(path_, std::ios::binary) {
  check(input_.is_open(), "cannot open {}: the limit on open files may be too low (ulimit -n)",
        path_.string());
}

void RunReader::read(void* bytes, std::size_t size) {
  input_.read(static_cast<char*>(bytes), static_cast<std::streamsize>(size));
  check(static_cast<std::size_t>(input_.gcount()) == size, "cannot read {}", path_.string());
}

bool RunReader::next(EventTable& events) {
  if (input_.peek() == std::ifstream::traits_type::eof()) {
    input_.close();
    if (at_end_ == AtEnd::remove) std::filesystem::remove(path_);
    return false;
  }
  std::int64_t columns = 0;
  read(&columns, sizeof columns);
  const auto read_column = [&](IntegerColumn& column) {
    ColumnHeader header{};
    read(header.data(), sizeof header);
    column = IntegerColumn(static_cast<IntegerColumn::Width>(header[0]));
    column.resize(header[1]);
    column.overwrite([&](auto& values) { read(values.data(), std::span(values).size_bytes()); });
  };
  read_column(events.user);
  read_column(events.time);
  read_column(events.nanoseconds);
  read_column(events.item);
  events.context.resize(static_cast<std::size_t>(columns));
  for (IntegerColumn& column : events.context) read_column(column);
  events.action.resize(static_cast<std::size_t>(events.user.size()));
  read(events.action.data(), events.action.size());
  return true;
}

}  // namespace hstu
