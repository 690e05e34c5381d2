// The kernels for query offsets, where most samples have few queries: the last layer of a ranking model. They
// read keys and values once (twice in the backward pass), 16 bytes a lane, and are bound by memory. fp32 sums
// in a fixed order, no atomics.
#pragma once

#include <cuda_runtime_api.h>

#include "hstu/attention/problem.h"

namespace hstu::cuda {

void few_queries_forward(const AttentionProblem& problem, const AttentionRows& o, cudaStream_t stream);
void few_queries_backward(const AttentionProblem& problem, const AttentionGradients& gradients,
                          cudaStream_t stream);

}  // namespace hstu::cuda
