// LineExchange: rows on their way between lines and host memory.
#pragma once

#include <cstdint>

#include "hstu/device/stream.h"
#include "hstu/device/transfer_blocks.h"
#include "hstu/embedding/row_lines.h"

namespace hstu {

class LineExchange {
 public:
  // `lines` must outlive it.
  LineExchange(RowLines& lines, const Context& where)
      : lines_(lines), arrived_(where.device()), blocks_(where.stream) {}

  // A list of n rows, to be filled, and the same for rows in host memory of `floats` floats.
  RowLines::Exchange* list(std::int64_t n) { return blocks_.next<RowLines::Exchange>(n); }
  // Puts the first n rows of the last list() on the stream.
  void start(const RowLines::Exchange* rows, std::int64_t n, Pace pace) {
    lines_.exchange({rows, static_cast<std::size_t>(n)}, pace);
    blocks_.in_use();
    arrived_.record(lines_.context().stream);
  }
  // Rows that have left lines are in host memory, and those that come have been read there.
  void settle() { arrived_.synchronize(); }

 private:
  RowLines& lines_;
  Event arrived_;
  TransferBlocks blocks_;
};

}  // namespace hstu
