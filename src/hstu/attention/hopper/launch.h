// The launches of the kernels for Hopper: schedule, statistics of a softmax, pass.
#pragma once

#include <cuda_runtime_api.h>

#include "hstu/attention/cuda/bias.h"
#include "hstu/attention/problem.h"
#include "hstu/attention/route.h"

namespace hstu::cuda {

// Bytes of the workspaces, without those of a bias.
std::int64_t hopper_forward_bytes(const AttentionProblem& problem);
std::int64_t hopper_backward_bytes(const AttentionProblem& problem);

// `bias`: null, or that of the problem. `cluster`: AttentionRoute::forward_cluster.
void hopper_forward(const AttentionProblem& problem, const AttentionDevice& device, int cluster,
                    const AttentionRows& o, const Bias* bias, void* workspace, cudaStream_t stream);
void hopper_backward(const AttentionProblem& problem, const AttentionDevice& device,
                     const AttentionGradients& gradients, const Bias* bias, void* workspace,
                     cudaStream_t stream);

}  // namespace hstu::cuda
