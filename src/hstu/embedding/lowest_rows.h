// LowestRows: finds the rows of a table with the lowest scores, exactly, without looking at every row in
// every step.
//
// A scan of all rows collects those at or below a threshold, a small part of all. Scores only rise, so a row
// that was above the threshold remains above it, and the lowest rows are among those collected until none of
// them is left; then the next scan follows. A collected row whose score has risen is noticed when its turn
// comes. Rows are selected and not sorted: the lowest of those collected, and of these the ones that leave.
// The threshold comes from a sample of the rows: it decides how long a scan lasts, not which rows are the
// lowest (docs/decisions/0040-limited-tables.md).
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "hstu/rows/row_directory.h"

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

  // Gives up the lowest rows, `count` or all, in any order: of those not seen in step `busy`, and where these
  // are too few, of those that were. The caller removes them from the store, or puts them back.
  std::vector<Row> take(std::int64_t count, std::uint32_t busy);
  void put_back(std::span<const Row> rows);
  // Before the next step ends, of every row that is new and has its first score, unless scanned() says that
  // a scan has found the new rows. Risen scores are noticed by themselves.
  void add(std::int64_t slot);
  // Whether a scan has seen every row that was there when it was last called, or later.
  bool scanned() { return std::exchange(scanned_, false); }
  // After rows that were not taken have been removed.
  void clear();

  // The order in which the rows of take() leave.
  static bool leaves_before(const Row& a, const Row& b) {
    return a.busy != b.busy ? b.busy : a.order < b.order;
  }

  RowOrder order(std::int64_t slot) const {
    const HostRow& row = rows_.row(slot);
    return {by_step_ ? std::int64_t{row.seen} : row.score, row.id};
  }

 private:
  void scan(std::int64_t wanted);
  RowOrder threshold(std::int64_t wanted) const;
  void push(const Row& row);
  bool refill(std::int64_t wanted);

  static constexpr RowOrder kBelowAll{std::numeric_limits<std::int64_t>::min(), -1};
  const RowDirectory& rows_;
  bool by_step_;
  bool scanned_ = false;
  // Every row at or below threshold_ is in one of these two, those at or below front_threshold_ in front_.
  RowOrder threshold_ = kBelowAll, front_threshold_ = kBelowAll;
  std::vector<Row> front_, pool_;
};

}  // namespace hstu
