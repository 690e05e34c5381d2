// RowGradients: gradients of table rows, gathered over the parts of a global batch and over ranks, and summed
// by row for a single update.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hstu/comm/communicator.h"
#include "hstu/embedding/table_set.h"

namespace hstu {

class RowGradients {
 public:
  // `tables` must outlive it.
  explicit RowGradients(TableSet& tables) : tables_(tables) {}

  // Adds the gradients (n_t, D) of one part's rows, one tensor per table; undefined: none. Copies ids in host
  // memory, which belong to the batch, and keeps the tensors.
  void add(RowSelection selection, std::vector<Tensor> gradients);

  // Sums by row over all parts and ranks: parts in the order of add(), then ranks in their order, so every
  // rank has the same bits. Does not change a single part on one rank. Tables on a GPU: one rank.
  void merge(Communicator& comm);

  // After merge(): updates every row that has a gradient once. The tables of all ranks remain equal.
  void apply(double learning_rate);

  // The first table with a gradient that is not finite, and the id; empty if all are finite.
  struct BadGradient {
    std::size_t table = 0;
    std::int64_t id = 0;
  };
  std::optional<BadGradient> first_bad() const;

 private:
  struct Part {
    RowSelection selection;
    std::vector<Tensor> gradients;  // (n_t, D) each
  };
  // The ids and sums of table t, over the parts and ranks.
  void sum(std::size_t t, Communicator& comm, Part& sums) const;

  TableSet& tables_;
  std::vector<Part> parts_;  // host: one after merge()
};

}  // namespace hstu
