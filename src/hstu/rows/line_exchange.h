// LineExchange: rows on their way between lines and host memory.
#pragma once

#include <cstdint>
#include <span>

#include "hstu/base/threads.h"
#include "hstu/device/stream.h"
#include "hstu/device/transfer_blocks.h"
#include "hstu/rows/row_cache.h"
#include "hstu/rows/row_lines.h"

namespace hstu {

class LineExchange {
 public:
  // `lines` must outlive it.
  LineExchange(RowLines& lines, const Context& where)
      : lines_(lines), arrived_(where.device()), blocks_(where.stream) {}

  // Puts `moves` on the stream. row_of(place, slot) is where in host memory the row of a slot is or will be:
  // place 2 i for the row that leaves by move i, 2 i + 1 for the one that comes. All threads call it.
  template <typename RowOf>
  void start(std::span<const RowCache::Move> moves, Pace pace, const RowOf& row_of) {
    const auto row_or_none = [&](std::size_t place, std::int64_t slot) {
      return slot < 0 ? nullptr : row_of(place, slot);
    };
    auto* const list = blocks_.next<RowLines::Exchange>(std::ssize(moves));
    parallel_blocks(std::ssize(moves), kLookupGrain, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        const RowCache::Move& move = moves[i];
        list[i] = {move.line, row_or_none(2 * i, move.out), row_or_none(2 * i + 1, move.in)};
      }
    });
    lines_.exchange({list, moves.size()}, pace);
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
