// RowGradients: gradients of table rows, gathered over the parts of a global batch and over ranks, and summed
// by id before the one update.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hstu/comm/communicator.h"
#include "hstu/embedding/table_set.h"

namespace hstu {

class RowGradients {
 public:
  explicit RowGradients(std::size_t tables) : tables_(tables) {}

  // The gradients (n_t, D) of one part's rows, one a table; an undefined tensor means none. Copies the ids
  // and keeps the tensors.
  void add(RowSelection selection, std::vector<Tensor> gradients);

  // Sums by id over all parts and ranks: parts in the order they were added, then ranks in their order, so
  // that every rank has the same bits. A single part on one rank stays as it is.
  void merge(Communicator& comm);

  // After merge(): one update of every row that has a gradient. Ranks hold equal tables, and keep them equal.
  void apply(TableSet& tables, double learning_rate) const;

  // The first table with a gradient that is not finite, and the id; nothing when all are finite.
  struct BadGradient {
    std::size_t table = 0;
    std::int64_t id = 0;
  };
  std::optional<BadGradient> first_bad() const;

 private:
  struct Part {
    std::vector<std::int64_t> ids;    // (n)
    std::vector<std::int64_t> slots;  // (n), or none: not looked up
    Tensor gradients;                 // (n, D)
  };
  std::vector<std::vector<Part>> tables_;  // parts of each table; one after merge()
};

}  // namespace hstu
