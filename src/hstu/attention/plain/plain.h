// The plain kernels: CUDA cores, tiles in shared memory (plain_tile.cuh), fp32 sums in one order, any head
// size up to 256, any strides, any architecture, no atomics, query offsets. fp32 inputs, other head sizes and
// strides than tensor cores take, and query offsets in other types than bf16 use them.
#pragma once

#include <cuda_runtime_api.h>

#include "hstu/attention/cuda/bias.h"
#include "hstu/attention/cuda/limits.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

// `bias`: null where the problem has none. Times as 32 bits are not needed.
void plain_forward(const AttentionProblem& problem, const AttentionRows& o, const Bias* bias,
                   cudaStream_t stream);
void plain_backward(const AttentionProblem& problem, const AttentionGradients& gradients, const Bias* bias,
                    cudaStream_t stream);

// Any type, head size and strides, as the plain forward pass; a softmax and cached keys too; single_rows.cu.
void single_rows_forward(const AttentionProblem& problem, const AttentionRows& o, const Bias* bias,
                         cudaStream_t stream);

}  // namespace hstu::cuda
