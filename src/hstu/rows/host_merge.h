// HostMerge: sums of gradients by row over the parts of a batch, in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hstu/rows/row_index.h"
#include "hstu/rows/row_shape.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

class HostMerge {
 public:
  explicit HostMerge(std::size_t tables) : first_(tables) {}

  // The first part of a batch follows.
  void begin();
  // Gradients (n, D) of the rows at `slots` (n), each once: those of rows that an earlier part had are added
  // to the gradient there, and their slots become kMergedRow. The gradients of all parts must stay where they
  // are.
  void add(std::size_t table, Tensor slots, Tensor gradients);

 private:
  struct First {
    RowIndex rows;                  // from slots to places of
    std::vector<float*> gradients;  // those that others are added to
  };
  std::vector<First> first_;  // by table
};

}  // namespace hstu
