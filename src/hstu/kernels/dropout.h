// Inverted dropout whose mask is a function of (key, name of the row, column): the backward pass computes it
// again instead of storing it, and a row's mask does not depend on its place in the batch.
#pragma once

#include <cstdint>

namespace hstu::kernels {

// Element (r, c) of a tensor: Philox4x32-10 with key mix64(key ^ name of row r) and counter c / 8 gives 128
// bits, of which element c takes the 16-bit piece c % 8, the lowest bits of word 0 first. It is dropped if
// the piece is below t = round(65536 * rate); kept elements are scaled by 65536 / (65536 - t). So the rate is
// rounded to a multiple of 1 / 65536 and the mean does not change.
struct Dropout {
  double rate = 0;                          // probability that an element is dropped, [0, 1)
  std::uint64_t key = 0;                    // one for each (seed, step, place in the model)
  const std::int64_t* row_names = nullptr;  // (rows) any 64 bits; nullptr: the number of the row
};

// factors (width): 0 or the scale of kept elements, for row `row` of a tensor; all 1 if the rate is 0. On the
// host.
template <typename T>
void dropout_factors(const Dropout& dropout, std::int64_t row, std::int64_t width, T* factors);

}  // namespace hstu::kernels
