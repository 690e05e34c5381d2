// Layers of few rows on Hopper.
#pragma once

#include "hstu/kernels/dense.h"

namespace hstu::kernels::cuda {

// False, and nothing is done: the kernels of products compute it faster, or alone.
bool dense_few_rows(const Dense<BFloat16>& p, CudaStream stream);

}  // namespace hstu::kernels::cuda
