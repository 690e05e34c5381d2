// Rows in a GPU's memory that differ from copies of them.
#pragma once

#include <span>

#include "hstu/tensor/tensor.h"

namespace hstu {

struct ChangedRows {
  Tensor before, now;  // (n, D) f32
  Tensor places;       // (n) i32: gets the places of the rows that differ in a bit, first, in any order
  Tensor count;        // (1) i64, zero before: their number
};

namespace cuda {

// Puts its work on the stream: one launch for all lists. Throws Error in a build without CUDA.
void find_changed(std::span<const ChangedRows> lists, const Stream& stream);

}  // namespace cuda
}  // namespace hstu
