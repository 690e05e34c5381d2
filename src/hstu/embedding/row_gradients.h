// RowGradients: gradients of table rows, gathered over the parts of a global batch and over ranks, and summed
// by id for a single update.
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

  // Adds the gradients (n_t, D) of one part's rows, one tensor per table; undefined: none. Copies the ids and
  // keeps the tensors.
  void add(RowSelection selection, std::vector<Tensor> gradients);

  // Sums by id over all parts and ranks: parts in the order of add(), then ranks in their order, so every
  // rank has the same bits. Does not change a single part on one rank.
  void merge(Communicator& comm);

  // After merge(): updates every row that has a gradient once. The tables of all ranks remain equal.
  void apply(TableSet& tables, double learning_rate) const;

  // The first table with a gradient that is not finite, and the id; empty if all are finite.
  struct BadGradient {
    std::size_t table = 0;
    std::int64_t id = 0;
  };
  std::optional<BadGradient> first_bad() const;

 private:
  struct Part {
    std::vector<std::int64_t> ids;    // (n)
    std::vector<std::int64_t> slots;  // (n), or empty: not looked up
    Tensor gradients;                 // (n, D)
  };
  std::vector<std::vector<Part>> tables_;  // parts of each table; one after merge()
};

}  // namespace hstu
