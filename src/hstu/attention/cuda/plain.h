// The plain kernels: one warp a row, fp32 sums, any head size up to 256, any strides, any architecture, no
// atomics, query offsets. They are simple rather than fast: fp32 inputs, query offsets and devices without
// tensor cores use them.
#pragma once

#include <cuda_runtime_api.h>

#include "hstu/attention/cuda/limits.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

void plain_forward(const AttentionProblem& problem, const AttentionRows& o, cudaStream_t stream);
void plain_backward(const AttentionProblem& problem, const AttentionGradients& gradients,
                    cudaStream_t stream);

}  // namespace hstu::cuda
