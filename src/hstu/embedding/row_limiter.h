// RowLimiter: decides which rows of a table with limits live (docs/tables.md). Lookups create rows freely and
// remove none, so a row that a step has looked up is there until the step ends. At the end of the step, the
// keeper is told what the step has seen, and brings the table back within its limits. What it decides depends
// on the ids of the step alone: not on their order, on threads, or on the division of the step into parts.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "hstu/embedding/lowest_rows.h"
#include "hstu/embedding/row_limits.h"
#include "hstu/embedding/waiting_ids.h"
#include "hstu/rows/rows_by_id.h"

namespace hstu {

// Since the beginning of the run, of the rows of one rank or of all.
struct RowCounts {
  std::int64_t inserted = 0;  // rows that came to live
  std::int64_t admitted = 0;  // of these: after their id had waited
  std::int64_t refused = 0;   // rows of the step that created them: the table was full and evicts never
  std::int64_t evicted = 0;   // by the capacity
  std::int64_t expired = 0;   // by the time to live
  std::int64_t hits = 0;      // distinct ids of a step that had a row before it
  std::int64_t misses = 0;    // distinct ids that had none
};

class RowLimiter {
 public:
  // The end of a step, in this order: begin_end, visit (any number of times, each id once in total), expire,
  // first_to_leave and drop. `rows` and `directory` are of one table, and must outlive it.
  RowLimiter(RowsById& rows, RowDirectory& directory, const RowLimits& limits);

  const RowLimits& limits() const { return limits_; }
  // Whether a training lookup creates rows. If not, an id gets its row from visit().
  bool creates_at_lookup() const { return limits_.admit_after == 0; }

  // Event time is the largest `time` (seconds) of any step so far.
  void begin_end(std::int64_t time);
  // Distinct ids (n) of the step and their occurrences (n), of at least 1; `slots` (n), or empty: to be
  // found; `values` (n) of a custom score, else empty.
  void visit(std::span<const std::int64_t> ids, std::span<const std::int64_t> occurrences,
             std::span<const std::int64_t> slots = {}, std::span<const std::int64_t> values = {});
  // Removes the rows that have expired, and those of lookups that no visit named.
  void expire();

  // The rows that leave first, `count` or all; ascending only if asked, because selecting them is cheaper. An
  // array orders a row among those of other ranks.
  using Leaving = std::array<std::int64_t, 3>;
  std::vector<Leaving> first_to_leave(std::int64_t count, bool ascending);
  // Removes the first `count` of these.
  void drop(std::int64_t count);

  const RowCounts& counts() const { return counts_; }
  std::int64_t bytes() const { return waiting_.bytes(); }
  const WaitingIds& waiting() const { return waiting_; }

  // What a checkpoint needs beside the rows: step, event time, the history of time, and the counts.
  struct State {
    std::int64_t step = 0;
    std::int64_t time = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> history;  // (cell of time, its first step), ascending
    RowCounts counts;
  };
  State state() const;
  // Of an empty keeper over a filled store: steps and scores of the rows at `slots` (n).
  void restore(const State& state, std::span<const std::int64_t> slots, std::span<const std::int64_t> seen,
               std::span<const std::int64_t> scores, std::span<const std::int64_t> waiting_ids,
               std::span<const std::int64_t> waiting_counts);

 private:
  // Time is divided into cells, 64 to a time to live, and rows expire when a cell begins.
  std::int64_t cell_of(std::int64_t time) const;
  // Of a row that the step has seen; `is_new`: for the first time.
  std::int64_t score_after(std::int64_t score, std::int64_t occurrences, std::int64_t value,
                           bool is_new) const;
  void admit(std::span<const std::int64_t> ids, std::span<const std::int64_t> occurrences,
             std::span<const std::int64_t> values);

  RowsById& store_;
  RowDirectory& rows_;
  RowLimits limits_;
  LowestRows lowest_;
  WaitingIds waiting_;
  RowCounts counts_;
  std::int64_t step_ = 0;  // that ends or has ended last
  std::int64_t time_ = 0;
  std::deque<std::pair<std::int64_t, std::int64_t>> history_;
  bool cell_began_ = false;               // with this step
  std::vector<RowPlace> created_;         // this step's new rows
  std::vector<LowestRows::Row> leaving_;  // of first_to_leave
};

}  // namespace hstu
