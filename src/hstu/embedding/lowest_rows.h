// LowestRows: finds the rows of a table with the lowest scores, exactly, without looking at every row in
// every step.
//
// A scan of all rows collects those at or below a threshold, a small part of all. Scores only rise, so a row
// that was above the threshold remains above it, and the lowest rows are among those collected until none of
// them is left; then the next scan follows. A collected row whose score has risen is noticed when its turn
// comes. The threshold comes from a sample of the rows: it decides how long a scan lasts, not which rows are
// the lowest (docs/decisions/0040-limited-tables.md).
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "hstu/embedding/row_directory.h"

namespace hstu {

// The order in which rows leave.
struct RowOrder {
  std::int64_t score = 0;
  std::int64_t id = 0;
  auto operator<=>(const RowOrder&) const = default;  // NOLINT: it sees a 0 that is not there
};

class LowestRows {
 public:
  struct Row {
    RowOrder order;
    std::uint32_t slot = 0;
    bool busy = false;  // seen in the step given to take()
  };

  // `rows` must outlive it. `by_step`: the score is HostRow::seen, else HostRow::score. No row is kNew.
  LowestRows(const RowDirectory& rows, bool by_step) : rows_(rows), by_step_(by_step) {}

  // Gives up the lowest rows, `count` or all: ascending those not seen in step `busy`, and where
  // these are too few, ascending those that were. The caller removes them from the store, or puts them back.
  std::vector<Row> take(std::int64_t count, std::uint32_t busy);
  void put_back(std::span<const Row> rows);
  // Before the next step ends, of every row that is new and has its first score. Risen scores and removed
  // rows are noticed by themselves.
  void add(std::int64_t slot);

  RowOrder order(std::int64_t slot) const {
    const HostRow& row = rows_.row(slot);
    return {by_step_ ? std::int64_t{row.seen} : row.score, row.id};
  }

 private:
  void scan(std::int64_t wanted);
  RowOrder threshold(std::int64_t wanted) const;
  void push(const Row& row);
  bool empty() const { return next_ == sorted_.size() && heap_.empty(); }
  Row pop();

  const RowDirectory& rows_;
  bool by_step_;
  RowOrder threshold_{-1, -1};  // every row at or below it is in one of these two
  std::vector<Row> sorted_;     // of the last scan, ascending, from next_
  std::size_t next_ = 0;
  std::vector<Row> heap_;  // of later, the lowest first
};

}  // namespace hstu
