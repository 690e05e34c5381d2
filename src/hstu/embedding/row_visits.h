// RowVisits: which ids a step has read and how often, over the parts of its batch and over ranks, and the end
// of the step for tables with limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hstu/comm/communicator.h"
#include "hstu/embedding/table_set.h"

namespace hstu {

class RowVisits {
 public:
  // `tables` must outlive it.
  explicit RowVisits(TableSet& tables) : tables_(tables), mine_(tables.size()) {}

  // Of one part: ids (n) of table t, each once, and their occurrences (n), of at least 1. A table without
  // limits takes nothing. `slots` (n), or empty: those of a training lookup on this rank, which need not be
  // found again. `values` (n) of a custom score; a table of another eviction takes none.
  void add(std::size_t t, std::span<const std::int64_t> ids, std::span<const std::int64_t> occurrences,
           std::span<const std::int64_t> slots = {}, std::span<const std::int64_t> values = {});

  // After the rows are updated: counts the visits of all ranks, gives waiting ids their rows, and removes the
  // rows that are beyond the limits. `time`: the latest event time of this rank's samples, in seconds. All
  // ranks call it together. A table keeps the same rows for any number of ranks, however they share it.
  void end_step(Communicator& comm, std::int64_t time);

 private:
  struct Visits : EmbeddingTable::Visits {
    bool is_distinct = true;  // else an id occurs once for each part and rank
  };
  // `with_values`: of a table with a custom score.
  static Visits of_all_ranks(const RowOwners& owners, Visits mine, bool with_values, Communicator& comm);
  static Visits merged(const Visits& visits);

  TableSet& tables_;
  std::vector<Visits> mine_;  // by table
};

}  // namespace hstu
