// Attention on the current CUDA device of this thread. In a build without CUDA every function throws Error.
#pragma once

#include <cstdint>

#include "hstu/attention/checks.h"
#include "hstu/attention/problem.h"
#include "hstu/attention/route.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace hstu::cuda {

// Throws Error if there is no device.
AttentionDevice attention_device();

// Bytes of scratch memory that each pass needs; they need no initial value. Both passes may use the same
// memory one after the other in a stream. The bytes for a batch are enough for every batch of fewer samples
// and tokens with the same kernels, heads and head size.
struct AttentionWorkspace {
  std::int64_t forward = 0, backward = 0;
};
AttentionWorkspace attention_workspace(const AttentionProblem& problem, const AttentionRoute& route);

// As in attention.h.
void attention_forward(const AttentionProblem& problem, const AttentionDevice& device, const AttentionRows& o,
                       const AttentionScratch& scratch, CUstream_st* stream);
void attention_backward(const AttentionProblem& problem, const AttentionDevice& device,
                        const AttentionGradients& gradients, const AttentionScratch& scratch,
                        CUstream_st* stream);

// Copies the lists of the problem to the host, waits for the stream, and throws Error for what check_offsets
// and check_counts refuse and for pointers that the device cannot read. Meant for finding a caller's
// mistakes.
void check_attention_lists(const AttentionProblem& problem, CUstream_st* stream);

}  // namespace hstu::cuda
