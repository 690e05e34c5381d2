#include "hstu/attention/attention_cuda.h"
#include "hstu/attention/cuda/bias.h"
#include "hstu/attention/cuda/launch_tensor_cores.h"
#include "hstu/attention/few_queries/few_queries.h"
#include "hstu/attention/few_queries/queries.h"
#include "hstu/attention/hopper/launch.h"
#include "hstu/attention/mma/launch.h"
#include "hstu/attention/plain/plain.h"
#include "hstu/attention/plain/softmax.h"
#include "hstu/base/error.h"
#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda/current_device.h"

namespace hstu::cuda {
namespace {

bool is_on_cuda_cores(AttentionKernel kernel) {
  return kernel == AttentionKernel::plain || kernel == AttentionKernel::softmax ||
         kernel == AttentionKernel::single_rows;
}

// Kernels for tensor cores read and write 16 bytes at a time.
void check_vectors(const AttentionKernel kernel, const char* name, const AttentionInput& rows) {
  check(
      is_on_cuda_cores(kernel) || is_aligned(rows),
      "attention: {} must be aligned to 16 bytes with strides in multiples of 8, found {} and the strides {} "
      "and {}",
      name, fmt::ptr(rows.data), rows.row_stride, rows.head_stride);
}

void check_gradients(const AttentionProblem& p, const AttentionGradients& g, AttentionKernel kernel) {
  check_input(p, "d_o", g.d_o);
  check_vectors(kernel, "d_o", g.d_o);
  check_output(p, "dq", g.dq, p.query_rows());
  check_vectors(kernel, "dq", g.dq);
  check_output(p, "dk", g.dk, p.tokens);
  check_vectors(kernel, "dk", g.dk);
  check_output(p, "dv", g.dv, p.tokens);
  check_vectors(kernel, "dv", g.dv);
  const bool adds = is_on_cuda_cores(kernel) || kernel == AttentionKernel::few_queries;
  check(adds || !(g.accumulate_dq || g.accumulate_dkv),
        "attention: the {} kernels overwrite gradients, they cannot add to them", to_string(kernel));
  if (p.score == ScoreFunction::softmax && !is_on_cuda_cores(kernel)) {
    check_input(p, "o", g.o);
    check_vectors(kernel, "o", g.o);
  }
  const bool sloped = g.q_before != nullptr || g.k_before != nullptr || g.v_before != nullptr;
  check(!sloped || (g.q_before != nullptr && g.k_before != nullptr && g.v_before != nullptr),
        "attention: q_before, k_before and v_before must be given together");
  check(!sloped || multiplies_slope(kernel),
        "attention: the {} kernels do not multiply by the slope of SiLU (q_before)", to_string(kernel));
  if (!sloped) return;
  check_vectors(kernel, "q_before", {g.q_before, g.dq.row_stride, g.dq.head_stride});
  check_vectors(kernel, "k_before", {g.k_before, g.dk.row_stride, g.dk.head_stride});
  check_vectors(kernel, "v_before", {g.v_before, g.dv.row_stride, g.dv.head_stride});
}

// Bytes at the end of the workspace for the bias of a pass of `kernel`, if the problem has one.
std::int64_t bias_bytes_of(const AttentionProblem& p, AttentionKernel kernel, bool gradients) {
  if (kernel == AttentionKernel::single_rows) return 0;
  return bias_bytes(p, !is_on_cuda_cores(kernel), gradients);
}

// The bias of a pass whose kernel needs `kernel_bytes` of the workspace before it. `g`: of the backward pass.
Bias bias_after(std::int64_t kernel_bytes, const AttentionProblem& p, AttentionKernel kernel,
                const AttentionGradients* g, void* workspace, cudaStream_t stream) {
  if (kernel == AttentionKernel::single_rows) return bias_as_it_is(p.bias);  // few pairs: no launch before it
  return prepare_bias(p, !is_on_cuda_cores(kernel), g, static_cast<char*>(workspace) + kernel_bytes, stream);
}

// Bytes of scratch memory without those of a bias.
AttentionWorkspace kernel_workspace(const AttentionProblem& p, const AttentionRoute& route) {
  AttentionWorkspace bytes;
  if (route.forward == AttentionKernel::hopper) bytes.forward = hopper_forward_bytes(p);
  if (route.backward == AttentionKernel::hopper) bytes.backward = hopper_backward_bytes(p);
  if (route.forward == AttentionKernel::mma) bytes.forward = mma_forward_bytes(p);
  if (route.backward == AttentionKernel::mma) bytes.backward = mma_backward_bytes(p);
  if (route.backward == AttentionKernel::softmax) bytes.backward = aligned(softmax_backward_bytes(p));
  return bytes;
}

}  // namespace

AttentionDevice attention_device() {
  const auto attribute = [](cudaDeviceAttr which) { return current_device_attribute(which, "attention"); };
  return {.major = attribute(cudaDevAttrComputeCapabilityMajor),
          .minor = attribute(cudaDevAttrComputeCapabilityMinor),
          .multiprocessors = attribute(cudaDevAttrMultiProcessorCount)};
}

AttentionWorkspace attention_workspace(const AttentionProblem& p, const AttentionRoute& route) {
  const AttentionWorkspace kernels = kernel_workspace(p, route);
  return {kernels.forward + bias_bytes_of(p, route.forward, false),
          kernels.backward + bias_bytes_of(p, route.backward, true)};
}

void attention_forward(const AttentionProblem& p, const AttentionDevice& device, const AttentionRows& o,
                       const AttentionScratch& scratch, cudaStream_t stream) {
  const AttentionRoute route = choose_attention(p, device);
  check_output(p, "o", o, p.query_rows());
  check_vectors(route.forward, "o", o);
  if (p.tokens == 0 || p.samples == 0) return;
  check_scratch(scratch, attention_workspace(p, route).forward);
  Bias prepared;
  if (p.bias.any())
    prepared =
        bias_after(kernel_workspace(p, route).forward, p, route.forward, nullptr, scratch.data, stream);
  const Bias* const bias = p.bias.any() ? &prepared : nullptr;
  if (route.forward == AttentionKernel::hopper)
    hopper_forward(p, device, route.forward_cluster, o, bias, scratch.data, stream);
  else if (route.forward == AttentionKernel::mma)
    mma_forward(p, o, bias, scratch.data, stream);
  else if (route.forward == AttentionKernel::few_queries)
    few_queries_forward(p, o, stream);
  else if (route.forward == AttentionKernel::queries)
    queries_forward(p, o, stream);
  else if (route.forward == AttentionKernel::softmax)
    softmax_forward(p, o, bias, stream);
  else if (route.forward == AttentionKernel::single_rows)
    single_rows_forward(p, o, bias, stream);
  else
    plain_forward(p, o, bias, stream);
}

void attention_backward(const AttentionProblem& p, const AttentionDevice& device, const AttentionGradients& g,
                        const AttentionScratch& scratch, cudaStream_t stream) {
  const AttentionRoute route = choose_attention(p, device);
  check_gradients(p, g, route.backward);
  if (p.tokens == 0 || p.samples == 0) return;
  check_scratch(scratch, attention_workspace(p, route).backward);
  Bias prepared;
  if (p.bias.any())
    prepared = bias_after(kernel_workspace(p, route).backward, p, route.backward, &g, scratch.data, stream);
  const Bias* const bias = p.bias.any() ? &prepared : nullptr;
  if (route.backward == AttentionKernel::hopper)
    hopper_backward(p, device, g, bias, scratch.data, stream);
  else if (route.backward == AttentionKernel::mma)
    mma_backward(p, g, bias, scratch.data, stream);
  else if (route.backward == AttentionKernel::few_queries)
    few_queries_backward(p, g, stream);
  else if (route.backward == AttentionKernel::softmax)
    softmax_backward(p, g, bias, scratch.data, stream);
  else
    plain_backward(p, g, bias, stream);
  if (bias != nullptr) finish_bias(*bias, g, stream);
}

}  // namespace hstu::cuda
