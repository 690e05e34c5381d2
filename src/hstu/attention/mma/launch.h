// The launches of the kernels for tensor cores since Ampere: schedules, statistics of a softmax, pass.
#pragma once

#include <cuda_runtime_api.h>

#include "hstu/attention/cuda/bias.h"
#include "hstu/attention/problem.h"

namespace hstu::cuda {

// Bytes of the workspaces, without those of a bias.
std::int64_t mma_forward_bytes(const AttentionProblem& problem);
std::int64_t mma_backward_bytes(const AttentionProblem& problem);

// `bias`: null, or that of the problem.
void mma_forward(const AttentionProblem& problem, const AttentionRows& o, const Bias* bias, void* workspace,
                 cudaStream_t stream);
void mma_backward(const AttentionProblem& problem, const AttentionGradients& gradients, const Bias* bias,
                  void* workspace, cudaStream_t stream);

}  // namespace hstu::cuda
