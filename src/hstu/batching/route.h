// Route: how the ids of a feature travel to the ranks that have their rows.
#pragma once

#include <cstdint>
#include <span>

#include "hstu/tensor/tensor.h"

namespace hstu {

// The distinct ids of one feature in the order in which they travel: those that are read on rank 0 first. Of
// a table by column every rank reads all of them. The memory is the batch's.
struct Route {
  Tensor ids;                            // (n) i64, on the batch's device
  Tensor positions;                      // (n) i32, there: where each is among the feature's ids of the batch
  Tensor host_ids;                       // the same as `ids`, in host memory
  std::span<const std::int64_t> counts;  // (ranks) ids that are read on each rank
};

}  // namespace hstu
