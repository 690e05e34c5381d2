// Attention pair by pair: a softmax over the keys of a query or SiLU, a relative bias, dropout of the
// weights, hidden keys, and cached keys, for any head size and any strides in fp32, bf16 and fp16. Atomics
// are in the gradients of bias tables alone, whose bits do not depend on their order.
#pragma once

#include <cuda_runtime_api.h>

#include "hstu/attention/cuda/bias.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

// `bias`: null where the problem has none. Times as 32 bits are not needed.
void softmax_forward(const AttentionProblem& problem, const AttentionRows& o, const Bias* bias,
                     cudaStream_t stream);
// What the backward pass keeps of each query and head.
std::int64_t softmax_backward_bytes(const AttentionProblem& problem);
void softmax_backward(const AttentionProblem& problem, const AttentionGradients& gradients, const Bias* bias,
                      void* workspace, cudaStream_t stream);

}  // namespace hstu::cuda
