// RowGradients: gradients of table rows, gathered over the parts of a global batch and over ranks, and summed
// by row for a single update.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hstu/comm/communicator.h"
#include "hstu/embedding/catalogue.h"
#include "hstu/embedding/device_gradients.h"
#include "hstu/embedding/shared_rows.h"
#include "hstu/embedding/table_set.h"

namespace hstu {

class RowGradients {
 public:
  // `tables` must outlive it.
  explicit RowGradients(TableSet& tables) : tables_(tables) {}

  // Adds the gradients (n_t, D) of one part's rows, one tensor per table; undefined: none. Copies ids in host
  // memory, which belong to the batch, and keeps the tensors, whose memory is its own: merge() adds there.
  // Tables on the GPUs of several ranks: all ranks call it together, and the gradients travel to the ranks
  // that have the rows.
  void add(RowSelection selection, std::vector<Tensor> gradients);

  // Adds the dense gradient of a catalogue's rows (Catalogue::gradient), which it takes: it is the first to
  // be summed, and the update has all rows of the catalogue. All ranks call it together.
  void add(Catalogue& catalogue);

  // Sums by row over all parts and ranks, in an order that depends on nothing else. Each rank gets the sums
  // of what it has of the rows; copies get the same bits. Does not change a single part on one rank.
  void merge(Communicator& comm);

  // After merge(): updates every row that has a gradient once. Copies of all ranks remain equal.
  void apply(const RowUpdate& update);

  // Those that apply() reads, (n, D) each.
  std::vector<Tensor> all() const;

  // The first table with a gradient that is not finite, and the id; empty if all are finite.
  struct BadGradient {
    std::size_t table = 0;
    std::int64_t id = 0;
  };
  std::optional<BadGradient> first_bad() const;

 private:
  using Part = OwnedGradients;
  // The ids and gradients of table t, of one part after another.
  RowsWithIds rows_of(std::size_t t) const;
  // Appends the sums by row of table t.
  void add_sums(std::size_t t, const RowsWithIds& rows, Part& sums) const;

  TableSet& tables_;
  std::vector<Tensor> sent_;  // gradients that tables_.stream() may still read
  std::vector<Part> parts_;   // host: one after merge(); GPUs: one for each part of each rank
};

}  // namespace hstu
