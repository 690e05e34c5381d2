// Jagged HSTU attention on the GPU, forward and backward. problem.h states the formula, mask.h the mask,
// route.h which kernels compute it. Nothing here synchronises the device or allocates: memory and stream come
// from the caller.
#pragma once

#include <cstdint>

#include "hstu/attention/problem.h"
#include "hstu/attention/route.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace hstu {

// Of the current device of this thread; throws Error where there is none, or where hstu was built without
// CUDA.
AttentionDevice attention_device();

// Bytes of scratch memory on the device, aligned to 256; they need no initial value. What a batch needs is
// enough for any of fewer samples and tokens whose kernels, heads and head size are the same.
struct AttentionWorkspace {
  std::int64_t forward = 0, backward = 0;
};
AttentionWorkspace attention_workspace(const AttentionProblem& problem, const AttentionRoute& route);

// o: rows as q. Rows of no sample are not touched.
void attention_forward(const AttentionProblem& problem, const AttentionDevice& device, const AttentionRows& o,
                       void* workspace, CUstream_st* stream);

// Gradients of q, k and v from d_o, the gradient of o; all in the problem's type. They are overwritten.
void attention_backward(const AttentionProblem& problem, const AttentionDevice& device,
                        const AttentionRows& d_o, const AttentionRows& dq, const AttentionRows& dk,
                        const AttentionRows& dv, void* workspace, CUstream_st* stream);

}  // namespace hstu
