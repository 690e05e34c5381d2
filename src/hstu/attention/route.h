// The choice of what computes a problem: a pure function of the problem and the device, which can be tested
// without that device and printed.
#pragma once

#include <span>
#include <string>

#include "hstu/attention/problem.h"

namespace hstu {

// The host, or a GPU.
struct AttentionDevice {
  int major = 0, minor = 0;  // compute capability; 0.0: the host
  int multiprocessors = 0;

  bool is_host() const { return major == 0; }
};
inline constexpr AttentionDevice kHost{};

enum class AttentionKernel {
  cpu,          // blocked loops: the host
  hopper,       // wgmma, bulk copies: capability 9.0; softmax scores up to head size 128, with dropout
  mma,          // mma.sync, no atomics: compute capability 8.0 and later; softmax scores too, as hopper
  few_queries,  // bf16 with query offsets: bound by reading keys and values
  plain,        // fp32 arithmetic on CUDA cores: everything else on GPUs
  softmax,      // the same pair by pair: cached keys, softmax scores that hopper and mma do not compute
  single_rows,  // the same, forward alone, a row by itself: row_stable, and few queries with cached keys
  queries,      // forward alone, wgmma: many queries that are the last tokens of samples, and cached keys
};

// What a kernel computes beside sums of SiLU over a mask of intervals.
struct KernelSupport {
  AttentionKernel kernel;
  bool softmax = false, bias = false, past = false, hidden_keys = false, row_stable = false, dropout = false;
  // Where the scores are of a softmax.
  bool softmax_of_hidden_keys = false, softmax_with_dropout = false;
};
std::span<const KernelSupport> kernel_support();  // a row for each kernel
// What the problem asks for that the kernel does not compute, in words; "": nothing. `row_stable` asks for it
// of the forward pass alone.
std::string missing_support(const AttentionProblem& problem, AttentionKernel kernel);

struct AttentionRoute {
  AttentionKernel forward = AttentionKernel::plain;
  AttentionKernel backward = AttentionKernel::plain;
  std::string why;          // one line for people
  int forward_cluster = 1;  // blocks that share a tile of the forward pass, on Hopper
};

// The forward and the backward pass ask this function before they launch anything. Throws Error for a problem
// that nothing computes on the device, naming what only the host computes.
AttentionRoute choose_attention(const AttentionProblem& problem, const AttentionDevice& device);

// Whether the backward kernel multiplies gradients by the slope of SiLU (AttentionGradients::q_before).
inline bool multiplies_slope(AttentionKernel kernel) {
  return kernel == AttentionKernel::hopper;
}

// `real` as a device of the compute capability `asked`: choose_attention then returns the kernels that such a
// device takes. Throws UsageError if `real` cannot run them: kernels for 9.0 run on 9.0 only, mma.sync needs
// 8.0 or later.
AttentionDevice device_as(const AttentionDevice& real, const AttentionDevice& asked);

std::string to_string(AttentionKernel kernel);

// Whether kernels may read and write 16 bytes at a time.
bool is_aligned(const AttentionInput& rows);

}  // namespace hstu
