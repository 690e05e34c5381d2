// Attention pair by pair: a softmax over the keys of a query or SiLU, dropout of the weights, hidden keys,
// and cached keys, for any head size and any strides in fp32, bf16 and fp16, without atomics.
#pragma once

#include <cuda_runtime_api.h>

#include "hstu/attention/problem.h"

namespace hstu::cuda {

void softmax_forward(const AttentionProblem& problem, const AttentionRows& o, cudaStream_t stream);
// What the backward pass keeps of each query and head.
std::int64_t softmax_backward_bytes(const AttentionProblem& problem);
void softmax_backward(const AttentionProblem& problem, const AttentionGradients& gradients, void* workspace,
                      cudaStream_t stream);

}  // namespace hstu::cuda
