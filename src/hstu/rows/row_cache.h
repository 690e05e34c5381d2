// RowCache: which rows of a table are in a cache of a fixed number of lines, and which leave it for others.
// It moves nothing itself: it says what is to be moved. Rows that a step has looked up stay until it ends,
// and those prefetched for the next step stay until it begins. Lines are in groups of 16: of the others in
// each group in turn, the least used leaves; counts of uses are halved from time to time, so that the rows of
// the past leave too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/base/huge_pages.h"
#include "hstu/rows/row_directory.h"

namespace hstu {

// slots (m) at `places` (m) of `slots`.
std::vector<std::int64_t> slots_at(std::span<const std::int64_t> places, std::span<const std::int64_t> slots);

class RowCache {
 public:
  // Where a row is that has no line.
  static constexpr std::int32_t kBelow = -1;    // in the memory below the cache
  static constexpr std::int32_t kNowhere = -2;  // it has only its initial value

  // `rows` must outlive it. Fewer than 2^31 lines.
  RowCache(const RowDirectory& rows, std::int64_t lines);

  // More lines.
  void grow(std::int64_t lines);
  std::int64_t lines() const { return static_cast<std::int64_t>(lines_.size()); }
  std::int64_t bytes() const;
  static constexpr std::int64_t most_bytes(std::int64_t rows, std::int64_t lines) {
    return rows * std::int64_t{sizeof(std::int32_t)} +
           lines * std::int64_t{sizeof(Line) + 2 * sizeof(std::int32_t)};
  }
  // The line of the row at `slot`, kBelow or kNowhere.
  std::int32_t line_of(std::int64_t slot) const { return line_of_[static_cast<std::size_t>(slot)]; }

  // New rows at `slots`, kNowhere; or rows that are in the memory below.
  void add(std::span<const std::int64_t> slots, std::int32_t where);

  // The row of a line goes to slot `out` of the memory below, then that of slot `in` comes; -1: none.
  struct Move {
    std::int64_t line, out, in;
  };
  struct Begin {
    std::int64_t line, slot;
  };
  struct Moves {
    std::vector<Move> moves;   // each line once
    std::vector<Begin> begin;  // after them: rows that were nowhere
  };

  // What looking at some rows has found.
  struct Found {
    std::vector<std::int64_t> missing;  // places of rows without a line
    std::int64_t hits = 0, pinned = 0;
    // Of all of `parts`, in their order.
    static Found of(std::span<const Found> parts);
  };
  // The rows at `slots` (n, each once; negative ones are ignored) are in use until end_step(), and change if
  // they say so. lines (n): those of the rows, and negative slots. The places of `found` count from `first`.
  // Threads may pin other rows at the same time; count() ends it, when all rows of the lookup have been
  // looked at.
  void pin(std::span<const std::int64_t> slots, std::int64_t first, std::int64_t* lines, Found& found,
           bool changes = true);
  // The same of rows that the next step will use, as far as it is known. Those without a line are below.
  void pin_next(std::span<const std::int64_t> slots, std::int64_t first, Found& found);
  void count(const Found& found);
  // Throws CacheTooSmall if there is no room for so many rows more in this step.
  void check_room(std::int64_t rows) const;
  // Gives lines to rows of this step that have none. The result is valid until the next call.
  const Moves& bring(std::span<const std::int64_t> slots, bool changes = true);
  // Gives lines to rows of the next step that are below, to the first of them that there is room for.
  const Moves& bring_next(std::span<const std::int64_t> slots);
  void end_step();
  // All rows whose lines have changed since they came: out. They keep their lines.
  Moves flush();

  // Distinct rows of steps that had a line when they were looked up, and that had to be waited for; rows
  // prefetched, which came as those waited for did; rows that went out.
  std::int64_t hits() const { return hits_; }
  std::int64_t misses() const { return misses_; }
  std::int64_t prefetched() const { return prefetched_; }
  std::int64_t left() const { return left_; }

 private:
  struct Line {
    std::uint32_t pin = 0;  // 2 s + 1: looked up in step s; 2 s: prefetched for step s
    bool changed = false;   // the row differs from that in the memory below
    std::uint8_t uses = 0;  // steps that have looked it up, while it was here
  };
  // A line for another row, and the slot of the row that goes below; -1: none.
  struct Taken {
    std::int32_t line, out;
  };
  static constexpr std::int64_t kGroup = 16;  // lines: 128 bytes
  std::int64_t groups() const;
  bool is_pinned(const Line& line) const { return line.pin > 2 * step_; }
  void read_ahead(std::span<const std::int64_t> slots, std::int64_t i) const;
  void take_lines(std::int64_t n, std::uint32_t pin);
  void take_of_groups(std::int64_t first, std::int64_t last, std::int64_t most, std::uint32_t pin,
                      std::vector<Taken>& taken);
  void place(std::span<const std::int64_t> slots, const Line& begins);

  const RowDirectory& rows_;
  HugePageVector<Line> lines_;
  std::vector<std::int32_t> slot_of_;     // by line; -1: free
  HugePageVector<std::int32_t> line_of_;  // by slot
  std::vector<std::int32_t> free_;
  std::int64_t hand_ = 0;  // the group whose line may have to leave next
  std::int64_t uses_ = 0;  // of all lines, since the counts were halved
  std::uint32_t step_ = 1;
  std::int64_t pinned_ = 0;   // lines
  std::vector<Taken> taken_;  // of the last bring(), kept for its memory, as moves_
  Moves moves_;
  std::int64_t hits_ = 0, misses_ = 0, prefetched_ = 0, left_ = 0;
};

}  // namespace hstu
