// How kernels are launched. A launch may be kept back until more work is put on its stream (LaunchGroups),
// and its kernel may begin while the launch before still runs: every block of a kernel launched here calls
// wait_for_previous_launch before it touches memory, and before it ends. Without it the launch after could
// begin before the one before has ended. Three read earlier, each what no launch that may still run writes:
// forward_sm90 behind its schedule, which has waited (attention/hopper/hand_out.cuh), queries_wgmma
// (attention/few_queries/queries.h), and few_rows of weights that are ready (kernels/dense.h).
#pragma once

#include <array>
#include <span>
#include <type_traits>

#include <cuda_runtime.h>

#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda/ptx.cuh"
#include "hstu/device/launch_list.h"

namespace hstu::cuda {

// Puts the launch on the stream, or keeps it with those of the same stream.
void launch_kernel(const LaunchShape& shape, std::span<const LaunchArgument> arguments, cudaStream_t stream);

// The kernel is shape.kernel.
template <typename... Parameters, typename... Arguments>
void launch_as(LaunchShape shape, void (*kernel)(Parameters...), cudaStream_t stream,
               const Arguments&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...));
  shape.kernel = reinterpret_cast<const void*>(kernel);
  [&](const std::remove_const_t<Parameters>&... parameters) {
    const std::array<LaunchArgument, sizeof...(Parameters)> bytes{
        std::as_bytes(std::span(&parameters, 1))...};
    launch_kernel(shape, bytes, stream);
  }(arguments...);
}

template <typename... Parameters, typename... Arguments>
void launch(const char* what, void (*kernel)(Parameters...), dim3 blocks, dim3 threads, cudaStream_t stream,
            const Arguments&... arguments) {
  launch_as(
      {.what = what, .blocks = {blocks.x, blocks.y, blocks.z}, .threads = {threads.x, threads.y, threads.z}},
      kernel, stream, arguments...);
}

// The same; the kernel may run at the same time as that of the launch before, as neither needs the other.
template <typename... Parameters, typename... Arguments>
void launch_beside(const char* what, void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
                   cudaStream_t stream, const Arguments&... arguments) {
  launch_as({.what = what,
             .blocks = {blocks.x, blocks.y, blocks.z},
             .threads = {threads.x, threads.y, threads.z},
             .beside = true},
            kernel, stream, arguments...);
}

// Lets a kernel be launched with up to `bytes` of shared memory beyond what it declares. Always the same
// number for one kernel, because a launch that is kept needs it later.
void allow_shared_memory(const void* kernel, int bytes, const char* what);
template <typename Kernel>
void allow_shared_memory(Kernel* kernel, int bytes, const char* what) {
  allow_shared_memory(reinterpret_cast<const void*>(kernel), bytes, what);
}

// Launches a kernel in clusters of `cluster` blocks where the GPU has them, with its own number of bytes of
// shared memory beyond what it declares.
template <typename Arguments>
void launch_grid(void (*kernel)(const Arguments), const Arguments& arguments, dim3 blocks, int cluster,
                 int threads, int shared_bytes, cudaStream_t stream, const char* what) {
  if (shared_bytes > 0) allow_shared_memory(kernel, shared_bytes, what);
  launch_as({.what = what,
             .blocks = {blocks.x, blocks.y, blocks.z},
             .threads = {static_cast<unsigned>(threads), 1, 1},
             .shared_bytes = static_cast<unsigned>(shared_bytes),
             .cluster = static_cast<unsigned>(cluster)},
            kernel, stream, arguments);
}

// The same for the largest multiple of `cluster` up to `blocks`.
template <typename Arguments>
void launch_early(void (*kernel)(const Arguments), const Arguments& arguments, int blocks, int cluster,
                  int threads, int shared_bytes, cudaStream_t stream, const char* what) {
  launch_grid(kernel, arguments, dim3(static_cast<unsigned>(blocks / cluster * cluster)), cluster, threads,
              shared_bytes, stream, what);
}

}  // namespace hstu::cuda
