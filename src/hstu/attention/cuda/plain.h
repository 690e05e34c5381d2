// The plain kernels: one warp a row, fp32 sums, any head size up to 256, any strides, any architecture, no
// atomics. They are there to be right; fp32 inputs and devices without tensor cores take them.
#pragma once

#include <cuda_runtime_api.h>

#include "hstu/attention/cuda/limits.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

void plain_forward(const AttentionProblem& problem, const AttentionRows& o, cudaStream_t stream);
void plain_backward(const AttentionProblem& problem, const AttentionRows& d_o, const AttentionRows& dq,
                    const AttentionRows& dk, const AttentionRows& dv, cudaStream_t stream);

}  // namespace hstu::cuda
