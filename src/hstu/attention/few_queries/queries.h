// The forward pass of queries that are the last tokens of their samples, on the tensor cores of Hopper: of
// requests whose histories' keys are in pages, and of candidates that share a history.
#pragma once

#include <cuda_runtime_api.h>

#include "hstu/attention/problem.h"

namespace hstu::cuda {

// Sums of SiLU in bf16, heads of 64, 128 and 256, without a bias; with a past causal without a window and
// contexts, in pages of a multiple of 8 tokens. fp32 sums in a fixed order. A past and the lists of its
// problem are read before the launch before has ended: no launch that may still run writes them, as they come
// with a copy of the batch.
void queries_forward(const AttentionProblem& problem, const AttentionRows& o, cudaStream_t stream);

}  // namespace hstu::cuda
