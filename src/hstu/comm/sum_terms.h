// The arithmetic of sums over ranks on a GPU.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace hstu::cuda {

// sums (n) = terms[0] + ... + terms[count - 1], in this order; terms (count, n). Throws Error without CUDA.
void sum_terms(const float* terms, int count, std::int64_t n, float* sums, CUstream_st* stream);

}  // namespace hstu::cuda
