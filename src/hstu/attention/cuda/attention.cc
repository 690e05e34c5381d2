#include <algorithm>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hstu/attention/attention_cuda.h"
#include "hstu/attention/cuda/bias.h"
#include "hstu/attention/cuda/row_map.h"
#include "hstu/attention/few_queries/few_queries.h"
#include "hstu/attention/hopper/backward.h"
#include "hstu/attention/hopper/forward.h"
#include "hstu/attention/mma/mma.h"
#include "hstu/attention/plain/plain.h"
#include "hstu/attention/plain/softmax.h"
#include "hstu/base/error.h"
#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda/current_device.h"

namespace hstu::cuda {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

// The head size that the kernel computes with.
int width_of(const AttentionProblem& p) {
  return static_cast<int>(std::max<std::int64_t>(64, p.head_dim));
}

float half_alpha(const AttentionProblem& p) {
  return static_cast<float>(p.alpha) / 2;
}

// About as many tiles as an H200 computes at once: half as many if two blocks share each tile.
TileOrder forward_order(int cluster) {
  return {true, 128 / cluster, 512 / cluster};
}
// Twice as many as an H200 computes at once. At head size 256 two multiprocessors share a tile, and groups
// are smaller: tiles of one head that begin together wait for each other's turns.
TileOrder backward_order(int width) {
  return width == 256 ? TileOrder{false, 34, 66} : TileOrder{false, 256, 256};
}

// What the blocks of the backward pass share for dQ: fp32 sums, and the number of tiles that have added to
// each 64 rows of them (at head size 256 for each half of the columns). A head of one tile shares nothing.
std::int64_t sum_bytes(const AttentionProblem& p) {
  return 4 * shared_tiles(p, kBackwardTile) * kBackwardTile * width_of(p);
}
std::int64_t turn_bytes(const AttentionProblem& p) {
  return aligned(4 * shared_tiles(p, kBackwardTile) * (kBackwardTile / 64) * (width_of(p) == 256 ? 2 : 1));
}

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

// Calls body.template operator()<T, width>() for the problem's type and width.
template <typename Body>
void with_kernel(const AttentionProblem& p, const Body& body) {
  const auto with_width = [&]<typename T>() {
    if (width_of(p) == 64)
      body.template operator()<T, 64>();
    else if (width_of(p) == 128)
      body.template operator()<T, 128>();
    else
      body.template operator()<T, 256>();
  };
  if (p.type == AttentionType::bf16)
    with_width.template operator()<__nv_bfloat16>();
  else
    with_width.template operator()<__half>();
}

// Bytes at the end of the workspace for the bias of a pass of `kernel`, if the problem has one.
std::int64_t bias_bytes_of(const AttentionProblem& p, AttentionKernel kernel, bool gradients) {
  return bias_bytes(p, kernel != AttentionKernel::plain, gradients);
}

// The bias of a pass whose kernel needs `kernel_bytes` of the workspace before it. `g`: of the backward pass.
Bias bias_after(std::int64_t kernel_bytes, const AttentionProblem& p, AttentionKernel kernel,
                const AttentionGradients* g, void* workspace, cudaStream_t stream) {
  return prepare_bias(p, kernel != AttentionKernel::plain, g, static_cast<char*>(workspace) + kernel_bytes,
                      stream);
}

// Calls body(arguments), with the bias beside them if there is one.
template <typename Biased, typename Arguments, typename Body>
void with_bias(const Arguments& arguments, const Bias* bias, const Body& body) {
  if (bias == nullptr)
    body(arguments);
  else
    body(Biased{arguments, *bias});
}

void hopper_forward(const AttentionProblem& p, const AttentionDevice& device, int cluster,
                    const AttentionRows& o, const Bias* bias, void* workspace, cudaStream_t stream) {
  const int width = width_of(p), keys = forward_keys(width);
  const Schedule schedule = schedule_at(workspace);
  make_schedule(p, forward_queries(width, cluster, bias != nullptr), forward_order(cluster), schedule,
                nullptr, 0, stream);
  const ForwardArguments arguments{.q = row_map(p, p.q, 64, width),
                                   .k = row_map(p, p.k, keys, width / cluster),
                                   .v = row_map(p, p.v, keys, width / cluster),
                                   .o = row_map(p, o, 64, width),
                                   .samples = samples_of(p),
                                   .schedule = schedule,
                                   .o_data = o.data,
                                   .o_row_stride = o.row_stride,
                                   .o_head_stride = o.head_stride,
                                   .half_alpha = half_alpha(p),
                                   .head_dim = static_cast<int>(p.head_dim)};
  with_kernel(p, [&]<typename T, int kD>() {
    with_bias<BiasedForwardArguments>(arguments, bias, [&](const auto& all) {
      constexpr bool kBias = std::is_same_v<std::remove_cvref_t<decltype(all)>, BiasedForwardArguments>;
      if constexpr (!kBias || kD < 256) {  // as choose_attention has it
        if constexpr (kD > 64) {
          if (cluster == 2) return launch_forward_sm90<T, kD, 2>(all, device.multiprocessors, stream);
        }
        launch_forward_sm90<T, kD, 1>(all, device.multiprocessors, stream);
      }
    });
  });
}

void hopper_backward(const AttentionProblem& p, const AttentionDevice& device, const AttentionGradients& g,
                     const Bias* bias, void* workspace, cudaStream_t stream) {
  const int width = width_of(p), keys = width == 256 ? 64 : kBackwardTile;
  const int columns = width == 256 ? 128 : width;  // of Q and dO that one block of a cluster loads
  const Schedule schedule = schedule_at(workspace);
  char* const turns_taken = static_cast<char*>(workspace) + aligned(schedule_bytes(p, kBackwardTile));
  char* const dq_sum = turns_taken + turn_bytes(p);
  make_schedule(p, kBackwardTile, backward_order(width), schedule, turns_taken, turn_bytes(p), stream);
  const auto before = [&](const void* x, const AttentionRows& rows, int box_columns) {
    return x == nullptr ? CUtensorMap{} : row_map(p, {x, rows.row_stride, rows.head_stride}, 64, box_columns);
  };
  const BackwardArguments arguments{.q = row_map(p, p.q, 64, columns),
                                    .k = row_map(p, p.k, keys, width),
                                    .v = row_map(p, p.v, keys, width),
                                    .d_o = row_map(p, g.d_o, 64, columns),
                                    .k_half = row_map(p, p.k, keys, columns),
                                    .q_before_half = before(g.q_before, g.dq, columns),
                                    .dq_map = row_map(p, g.dq, 16, 64),
                                    .dk_map = row_map(p, g.dk, keys, width),
                                    .dv_map = row_map(p, g.dv, keys, width),
                                    .samples = samples_of(p),
                                    .schedule = schedule,
                                    .dq_sum = reinterpret_cast<float*>(dq_sum),
                                    .turns_taken = reinterpret_cast<std::int32_t*>(turns_taken),
                                    .dq = g.dq.data,
                                    .dk = g.dk.data,
                                    .dv = g.dv.data,
                                    .q_before = g.q_before,
                                    .k_before = before(g.k_before, g.dk, width),
                                    .v_before = before(g.v_before, g.dv, columns),
                                    .dq_row_stride = g.dq.row_stride,
                                    .dq_head_stride = g.dq.head_stride,
                                    .dk_row_stride = g.dk.row_stride,
                                    .dk_head_stride = g.dk.head_stride,
                                    .dv_row_stride = g.dv.row_stride,
                                    .dv_head_stride = g.dv.head_stride,
                                    .half_alpha = half_alpha(p),
                                    .head_dim = static_cast<int>(p.head_dim),
                                    .in_order = p.deterministic};
  with_kernel(p, [&]<typename T, int kD>() {
    if constexpr (kD == 256)
      launch_backward_sm90_256<T>(arguments, device.multiprocessors, stream);
    else if constexpr (kD == 128)
      launch_backward_sm90<T, kD>(arguments, device.multiprocessors, stream);
    else
      with_bias<BiasedBackwardArguments>(arguments, bias, [&](const auto& all) {
        launch_backward_sm90<T, kD>(all, device.multiprocessors, stream);
      });
  });
}

MmaArguments mma_arguments(const AttentionProblem& p, int rows, void* workspace, cudaStream_t stream) {
  const Schedule schedule = schedule_at(workspace);
  make_schedule(p, rows, forward_order(1), schedule, nullptr, 0, stream);
  return {.samples = samples_of(p),
          .schedule = schedule,
          .sides = {},
          .half_alpha = half_alpha(p),
          .head_dim = static_cast<int>(p.head_dim)};
}

void mma_forward(const AttentionProblem& p, const AttentionRows& o, const Bias* bias, void* workspace,
                 cudaStream_t stream) {
  const int rows = sum_mma_rows(width_of(p));
  MmaArguments arguments = mma_arguments(p, rows, workspace, stream);
  arguments.sides[0] = {.own = p.q,
                        .own_value = {},
                        .other = p.k,
                        .other_value = p.v,
                        .out = o,
                        .out_value = {},
                        .of_keys = false};
  with_kernel(p, [&]<typename T, int kD>() {
    with_bias<BiasedMmaArguments>(arguments, bias, [&](const auto& all) {
      launch_sum_mma<T, kD>(all, schedule_items(p, rows), stream);
    });
  });
}

// Keys of a tile of the first launch of the backward pass: dK and dV, or dV alone.
int mma_key_rows(int width) {
  return width == 256 ? sum_mma_rows(width) : key_gradient_mma_rows(width);
}

void mma_backward(const AttentionProblem& p, const AttentionGradients& g, const Bias* bias, void* workspace,
                  cudaStream_t stream) {
  const int width = width_of(p), key_rows = mma_key_rows(width),
            rows = gradient_mma_rows(width, bias != nullptr);
  void* const second_workspace = static_cast<char*>(workspace) + aligned(schedule_bytes(p, key_rows));
  MmaArguments first = mma_arguments(p, key_rows, workspace, stream);
  MmaArguments second = rows == key_rows ? first : mma_arguments(p, rows, second_workspace, stream);
  const MmaSide keys{.own = p.k,
                     .own_value = p.v,
                     .other = p.q,
                     .other_value = g.d_o,
                     .out = g.dk,
                     .out_value = g.dv,
                     .of_keys = true};
  const MmaSide queries{.own = p.q,
                        .own_value = g.d_o,
                        .other = p.k,
                        .other_value = p.v,
                        .out = g.dq,
                        .out_value = {},
                        .of_keys = false};
  with_kernel(p, [&]<typename T, int kD>() {
    if constexpr (kD == 256) {
      first.sides[0] = {.own = p.k,
                        .own_value = {},
                        .other = p.q,
                        .other_value = g.d_o,
                        .out = g.dv,
                        .out_value = {},
                        .of_keys = true};
      second.sides[0] = keys, second.sides[1] = queries;
      with_bias<BiasedMmaArguments>(first, bias, [&](const auto& all) {
        launch_sum_mma<T, kD>(all, schedule_items(p, key_rows), stream);
      });
    } else {
      first.sides[0] = keys, second.sides[0] = queries;
      with_bias<BiasedMmaArguments>(first, bias, [&](const auto& all) {
        launch_key_gradient_mma<T, kD>(all, schedule_items(p, key_rows), stream);
      });
    }
    with_bias<BiasedMmaArguments>(second, bias, [&](const auto& all) {
      launch_gradient_mma<T, kD>(all, schedule_items(p, rows), stream);
    });
  });
}

// Bytes of scratch memory without those of a bias.
AttentionWorkspace kernel_workspace(const AttentionProblem& p, const AttentionRoute& route) {
  AttentionWorkspace bytes;
  if (route.forward == AttentionKernel::hopper)
    bytes.forward =
        aligned(schedule_bytes(p, forward_queries(width_of(p), 1, p.bias.any())));  // tiles of two are fewer
  if (route.backward == AttentionKernel::hopper)
    bytes.backward = aligned(schedule_bytes(p, kBackwardTile)) + turn_bytes(p) + aligned(sum_bytes(p));
  if (route.forward == AttentionKernel::mma)
    bytes.forward = aligned(schedule_bytes(p, sum_mma_rows(width_of(p))));
  if (route.backward == AttentionKernel::mma)
    bytes.backward = aligned(schedule_bytes(p, mma_key_rows(width_of(p)))) +
                     aligned(schedule_bytes(p, gradient_mma_rows(width_of(p), p.bias.any())));
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
  else if (route.forward == AttentionKernel::softmax)
    softmax_forward(p, o, stream);
  else if (route.forward == AttentionKernel::single_rows)
    single_rows_forward(p, o, stream);
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
    softmax_backward(p, g, scratch.data, stream);
  else
    plain_backward(p, g, bias, stream);
  if (bias != nullptr) finish_bias(*bias, g, stream);
}

}  // namespace hstu::cuda
