// CatalogueRows: the rows of all items, as operations over a catalogue read them. They know no tables:
// embedding/catalogue.h is where rows and gradients usually are.
#pragma once

#include <cstdint>
#include <functional>

#include "hstu/tensor/tensor.h"

namespace hstu {

// What this rank has of the catalogue: all of it, or with several ranks a part that no other rank has.
// Alphabet: V items of this rank, E width.
struct CatalogueRows {
  std::int64_t size = 0, width = 0;      // V, E
  const std::int64_t* ids = nullptr;     // (V), ascending, in host memory
  Tensor device_ids;                     // the same on the GPU of the context; undefined on processors
  const std::int64_t* places = nullptr;  // (V) of ids among those of all ranks; null: 0, 1, ...
  // block (n, E) in the type of sums (f32; f64 where vectors are f64): the raw rows of ids[first] ..
  // ids[first + n - 1], as the stream of the context finds them. The rows stay the same between a forward
  // pass and its backward pass.
  std::function<void(std::int64_t first, Tensor& block)> read;
  // (V, E) in the type of sums, on the device of the context: what
  // a backward pass adds to. Called once by each. Unset: the rows have no gradient.
  std::function<Tensor()> gradient;
};

}  // namespace hstu
