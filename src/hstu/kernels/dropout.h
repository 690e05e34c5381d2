// Inverted dropout whose mask is a pure function of (key, element index): it is drawn again in the backward
// pass instead of being stored, and does not depend on threads or order.
#pragma once

#include <cstdint>

#include "hstu/base/random.h"

namespace hstu::kernels {

struct Dropout {
  double rate = 0;        // probability that an element is dropped, [0, 1)
  std::uint64_t key = 0;  // one per (seed, step, place in the model)
};

// factors[i] = 0 or 1 / (1 - rate) for elements first .. first + n - 1 of the tensor; all 1 when the rate is
// 0. Elements 4c .. 4c + 3 share one Philox call with counter c.
template <typename T>
void dropout_factors(const Dropout& dropout, std::int64_t first, std::int64_t n, T* factors);

}  // namespace hstu::kernels
