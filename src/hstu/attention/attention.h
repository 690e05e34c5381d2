// Jagged HSTU attention, forward and backward, on the CPU and on GPUs. problem.h states the formula, mask.h
// the mask, route.h what computes it. Nothing here synchronises a device or allocates its memory: memory and
// stream come from the caller.
#pragma once

#include "hstu/attention/checks.h"
#include "hstu/attention/problem.h"
#include "hstu/attention/route.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace hstu {

// o: rows as q. Rows of no sample are not touched. On the host (kHost) scratch and stream are not used.
// Throws Error for what choose_attention or the checks refuse.
void attention_forward(const AttentionProblem& problem, const AttentionDevice& device, const AttentionRows& o,
                       const AttentionScratch& scratch = {}, CUstream_st* stream = nullptr);

// Gradients of q, k and v from d_o, the gradient of o. Of the kernels for GPUs only the plain ones
// accumulate.
void attention_backward(const AttentionProblem& problem, const AttentionDevice& device,
                        const AttentionGradients& gradients, const AttentionScratch& scratch = {},
                        CUstream_st* stream = nullptr);

}  // namespace hstu
