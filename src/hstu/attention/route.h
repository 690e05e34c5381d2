// The choice of kernels: a pure function of the problem and the device, so that it can be tested without one
// and printed.
#pragma once

#include <string>

#include "hstu/attention/problem.h"

namespace hstu {

struct AttentionDevice {
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
};

enum class AttentionKernel {
  hopper,  // wgmma, bulk copies: compute capability 9.0
  mma,     // mma.sync, no atomics: compute capability 8.0 and later
  plain,   // fp32 arithmetic on CUDA cores: everything else
};

struct AttentionRoute {
  AttentionKernel forward = AttentionKernel::plain;
  AttentionKernel backward = AttentionKernel::plain;
  std::string why;          // one line a person can read
  int forward_cluster = 1;  // blocks that share a tile of the forward pass, on Hopper
};

// Throws Error for a problem that no kernel computes, before anything is launched: forward and backward pass
// ask the same function.
AttentionRoute choose_attention(const AttentionProblem& problem, const AttentionDevice& device);

// `real` as a device of the compute capability `asked`: choose_attention then gives the kernels that one
// would take. Throws UsageError where `real` could not run them: those for 9.0 run there alone, mma.sync from
// 8.0 on.
AttentionDevice device_as(const AttentionDevice& real, const AttentionDevice& asked);

std::string to_string(AttentionKernel kernel);

// Whether kernels may read and write 16 bytes at a time.
bool is_aligned(const AttentionRows& rows);

}  // namespace hstu
