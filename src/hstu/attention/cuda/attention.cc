#include "hstu/attention/attention.h"

#include <algorithm>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hstu/attention/cuda/backward_sm90.h"
#include "hstu/attention/cuda/forward_sm90.h"
#include "hstu/attention/cuda/mma.h"
#include "hstu/attention/cuda/plain.h"
#include "hstu/attention/cuda/tensor_map.h"
#include "hstu/base/error.h"
#include "hstu/device/cuda/check.h"

namespace hstu {
namespace {

using namespace cuda;

constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The head size the kernel computes with.
int width_of(const AttentionProblem& p) {
  return static_cast<int>(std::max<std::int64_t>(64, p.head_dim));
}

// About as many tiles as an H200 computes at once: half as many where two blocks share each.
TileOrder forward_order(int cluster) {
  return {true, 128 / cluster, 512 / cluster};
}
// As many as an H200 computes at once, or twice that; at head size 256 two multiprocessors share a tile.
TileOrder backward_order(int width) {
  return width == 256 ? TileOrder{false, 66, 132} : TileOrder{false, 256, 256};
}

// What the blocks of the backward pass share of dQ: fp32 sums, and how many tiles have added to each 64 rows
// of them (at head size 256 for each half of the columns). A head of one tile shares nothing.
std::int64_t sum_bytes(const AttentionProblem& p) {
  return 4 * shared_tiles(p, kBackwardTile) * kBackwardTile * width_of(p);
}
std::int64_t turn_bytes(const AttentionProblem& p) {
  return aligned(4 * shared_tiles(p, kBackwardTile) * (kBackwardTile / 64) * (width_of(p) == 256 ? 2 : 1));
}

void check_outputs(const AttentionKernel kernel, std::initializer_list<const AttentionRows*> all) {
  for (const AttentionRows* rows : all) {
    check(kernel == AttentionKernel::plain || is_aligned(*rows),
          "attention: outputs and dO must be aligned to 16 bytes with strides in multiples of 8, found "
          "strides {} and {}",
          rows->row_stride, rows->head_stride);
  }
}

// body.template operator()<T, width>() of the problem.
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

void hopper_forward(const AttentionProblem& p, const AttentionDevice& device, int cluster,
                    const AttentionRows& o, void* workspace, cudaStream_t stream) {
  const int width = width_of(p), keys = forward_keys(width);
  const Schedule schedule = schedule_at(workspace);
  make_schedule(p, forward_queries(width, cluster), forward_order(cluster), schedule, nullptr, 0, stream);
  const ForwardArguments arguments{row_map(p, p.q, 64, width),
                                   row_map(p, p.k, keys, width / cluster),
                                   row_map(p, p.v, keys, width / cluster),
                                   row_map(p, o, 64, width),
                                   samples_of(p),
                                   schedule,
                                   o.data,
                                   o.row_stride,
                                   o.head_stride,
                                   p.alpha / 2,
                                   static_cast<int>(p.head_dim)};
  with_kernel(p, [&]<typename T, int kD>() {
    if constexpr (kD > 64) {
      if (cluster == 2) return launch_forward_sm90<T, kD, 2>(arguments, device.multiprocessors, stream);
    }
    launch_forward_sm90<T, kD, 1>(arguments, device.multiprocessors, stream);
  });
}

void hopper_backward(const AttentionProblem& p, const AttentionDevice& device, const AttentionRows& d_o,
                     const AttentionRows& dq, const AttentionRows& dk, const AttentionRows& dv,
                     void* workspace, cudaStream_t stream) {
  const int width = width_of(p), keys = width == 256 ? 64 : kBackwardTile;
  const int columns = width == 256 ? 128 : width;  // of Q and dO that one block of a cluster loads
  const Schedule schedule = schedule_at(workspace);
  char* const turns_taken = static_cast<char*>(workspace) + aligned(schedule_bytes(p, kBackwardTile));
  char* const dq_sum = turns_taken + turn_bytes(p);
  make_schedule(p, kBackwardTile, backward_order(width), schedule, turns_taken, turn_bytes(p), stream);
  const BackwardArguments arguments{row_map(p, p.q, 64, columns),
                                    row_map(p, p.k, keys, width),
                                    row_map(p, p.v, keys, width),
                                    row_map(p, d_o, 64, columns),
                                    row_map(p, p.k, keys, columns),
                                    row_map(p, dk, keys, width),
                                    row_map(p, dv, keys, width),
                                    samples_of(p),
                                    schedule,
                                    reinterpret_cast<float*>(dq_sum),
                                    reinterpret_cast<std::int32_t*>(turns_taken),
                                    dq.data,
                                    dk.data,
                                    dv.data,
                                    dq.row_stride,
                                    dq.head_stride,
                                    dk.row_stride,
                                    dk.head_stride,
                                    dv.row_stride,
                                    dv.head_stride,
                                    p.alpha / 2,
                                    static_cast<int>(p.head_dim),
                                    p.deterministic};
  with_kernel(p, [&]<typename T, int kD>() {
    if constexpr (kD == 256)
      launch_backward_sm90_256<T>(arguments, device.multiprocessors, stream);
    else
      launch_backward_sm90<T, kD>(arguments, device.multiprocessors, stream);
  });
}

MmaArguments mma_arguments(const AttentionProblem& p, int rows, void* workspace, cudaStream_t stream) {
  const Schedule schedule = schedule_at(workspace);
  make_schedule(p, rows, forward_order(1), schedule, nullptr, 0, stream);
  return {samples_of(p), schedule, {}, p.alpha / 2, static_cast<int>(p.head_dim)};
}

void mma_forward(const AttentionProblem& p, const AttentionRows& o, void* workspace, cudaStream_t stream) {
  const int rows = sum_mma_rows(width_of(p));
  MmaArguments arguments = mma_arguments(p, rows, workspace, stream);
  arguments.sides[0] = {p.q, {}, p.k, p.v, o, {}, false};
  with_kernel(
      p, [&]<typename T, int kD>() { launch_sum_mma<T, kD>(arguments, schedule_items(p, rows), stream); });
}

// Keys of a tile of the first launch of the backward pass: dK and dV, or dV alone.
int mma_key_rows(int width) {
  return width == 256 ? sum_mma_rows(width) : key_gradient_mma_rows(width);
}

void mma_backward(const AttentionProblem& p, const AttentionRows& d_o, const AttentionRows& dq,
                  const AttentionRows& dk, const AttentionRows& dv, void* workspace, cudaStream_t stream) {
  const int width = width_of(p), key_rows = mma_key_rows(width), rows = gradient_mma_rows(width);
  void* const second_workspace = static_cast<char*>(workspace) + aligned(schedule_bytes(p, key_rows));
  MmaArguments first = mma_arguments(p, key_rows, workspace, stream);
  MmaArguments second = rows == key_rows ? first : mma_arguments(p, rows, second_workspace, stream);
  const MmaSide keys{p.k, p.v, p.q, d_o, dk, dv, true}, queries{p.q, d_o, p.k, p.v, dq, {}, false};
  with_kernel(p, [&]<typename T, int kD>() {
    if constexpr (kD == 256) {
      first.sides[0] = {p.k, {}, p.q, d_o, dv, {}, true};
      second.sides[0] = keys, second.sides[1] = queries;
      launch_sum_mma<T, kD>(first, schedule_items(p, key_rows), stream);
      launch_gradient_mma<T, kD>(second, schedule_items(p, rows), stream);
    } else {
      first.sides[0] = keys, second.sides[0] = queries;
      launch_key_gradient_mma<T, kD>(first, schedule_items(p, key_rows), stream);
      launch_gradient_mma<T, kD>(second, schedule_items(p, rows), stream);
    }
  });
}

}  // namespace

AttentionDevice attention_device() {
  int device = 0;
  AttentionDevice result;
  check_cuda(cudaGetDevice(&device), "attention");
  check_cuda(cudaDeviceGetAttribute(&result.major, cudaDevAttrComputeCapabilityMajor, device), "attention");
  check_cuda(cudaDeviceGetAttribute(&result.minor, cudaDevAttrComputeCapabilityMinor, device), "attention");
  check_cuda(cudaDeviceGetAttribute(&result.multiprocessors, cudaDevAttrMultiProcessorCount, device),
             "attention");
  return result;
}

AttentionWorkspace attention_workspace(const AttentionProblem& p, const AttentionRoute& route) {
  AttentionWorkspace bytes;
  if (route.forward == AttentionKernel::hopper)
    bytes.forward = aligned(schedule_bytes(p, forward_queries(width_of(p), 1)));  // tiles of two are fewer
  if (route.backward == AttentionKernel::hopper)
    bytes.backward = aligned(schedule_bytes(p, kBackwardTile)) + turn_bytes(p) + sum_bytes(p);
  if (route.forward == AttentionKernel::mma)
    bytes.forward = aligned(schedule_bytes(p, sum_mma_rows(width_of(p))));
  if (route.backward == AttentionKernel::mma)
    bytes.backward = aligned(schedule_bytes(p, mma_key_rows(width_of(p)))) +
                     aligned(schedule_bytes(p, gradient_mma_rows(width_of(p))));
  return bytes;
}

void attention_forward(const AttentionProblem& p, const AttentionDevice& device, const AttentionRows& o,
                       void* workspace, cudaStream_t stream) {
  const AttentionRoute route = choose_attention(p, device);
  check_outputs(route.forward, {&o});
  if (p.tokens == 0 || p.samples == 0) return;
  if (route.forward == AttentionKernel::hopper)
    hopper_forward(p, device, route.forward_cluster, o, workspace, stream);
  else if (route.forward == AttentionKernel::mma)
    mma_forward(p, o, workspace, stream);
  else
    plain_forward(p, o, stream);
}

void attention_backward(const AttentionProblem& p, const AttentionDevice& device, const AttentionRows& d_o,
                        const AttentionRows& dq, const AttentionRows& dk, const AttentionRows& dv,
                        void* workspace, cudaStream_t stream) {
  const AttentionRoute route = choose_attention(p, device);
  check_outputs(route.backward, {&d_o, &dq, &dk, &dv});
  if (p.tokens == 0 || p.samples == 0) return;
  if (route.backward == AttentionKernel::hopper)
    hopper_backward(p, device, d_o, dq, dk, dv, workspace, stream);
  else if (route.backward == AttentionKernel::mma)
    mma_backward(p, d_o, dq, dk, dv, workspace, stream);
  else
    plain_backward(p, d_o, dq, dk, dv, stream);
}

}  // namespace hstu
