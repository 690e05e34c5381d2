// The forward pass of queries that are the last tokens of their samples, on the tensor cores of Hopper: of
// requests whose histories' keys are in pages, and of candidates that share a history.
#pragma once

#include <cuda_runtime_api.h>

#include "hstu/attention/problem.h"

namespace hstu::cuda {

// Sums of SiLU in bf16, heads of 64, 128 and 256, without a bias; with a past causal without a window and
// contexts. fp32 sums in a fixed order.
void queries_forward(const AttentionProblem& problem, const AttentionRows& o, cudaStream_t stream);

}  // namespace hstu::cuda
