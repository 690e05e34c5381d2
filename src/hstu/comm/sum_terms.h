// The sums of what several ranks have sent.
#pragma once

#include <cstdint>

#include "hstu/device/stream.h"

namespace hstu {

// sums (n) = terms[0] + ... + terms[count - 1] + last, in this order; terms (count, n), last (n) or nullptr.
// On the stream's device. T: float, double, std::int32_t, or BFloat16, which is added in float and rounded
// once.
template <typename T>
void sum_terms(const T* terms, int count, std::int64_t n, const T* last, T* sums, const Stream& stream);

namespace cuda {

// The same on a GPU. Throws Error without CUDA.
template <typename T>
void sum_terms(const T* terms, int count, std::int64_t n, const T* last, T* sums, CUstream_st* stream);

}  // namespace cuda
}  // namespace hstu
