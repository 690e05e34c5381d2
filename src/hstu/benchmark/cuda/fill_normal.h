// Random inputs for benchmarks.
#pragma once

#include <cstdint>

#include "hstu/attention/problem.h"

struct CUstream_st;

namespace hstu {

// Normally distributed numbers that depend on the position alone. (With zeros a GPU takes less power and runs
// faster.)
void fill_normal(AttentionType type, void* to, std::int64_t count, CUstream_st* stream);

}  // namespace hstu
