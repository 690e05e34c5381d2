// Launches a kernel that may start while the one before it in the stream still runs: it calls
// wait_for_previous_launch before it touches memory.
#pragma once

#include <cuda_runtime.h>

#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda/current_device.h"

namespace hstu::cuda {

// From compute capability 9.0 on, launches overlap and blocks form clusters.
inline bool launches_overlap(const char* what) {
  thread_local int known = -1;  // the GPU of the last answer: small kernels ask for each launch
  thread_local bool overlap = false;
  int device = 0;
  check_cuda(cudaGetDevice(&device), what);
  if (device != known) {
    overlap = current_device_attribute(cudaDevAttrComputeCapabilityMajor, what) >= 9;
    known = device;
  }
  return overlap;
}

template <typename Arguments>
void launch_grid(void (*kernel)(const Arguments), const Arguments& arguments, dim3 blocks, int cluster,
                 int threads, int shared_bytes, cudaStream_t stream, const char* what) {
  if (shared_bytes > 0)
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes), what);
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  cudaLaunchConfig_t launch{};
  launch.gridDim = blocks;
  launch.blockDim = dim3(static_cast<unsigned>(threads));
  launch.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  launch.stream = stream;
  launch.attrs = attributes;
  launch.numAttrs = launches_overlap(what) ? 2 : 0;
  check_cuda(cudaLaunchKernelEx(&launch, kernel, arguments), what);
}

template <typename Arguments>
void launch_early(void (*kernel)(const Arguments), const Arguments& arguments, int blocks, int cluster,
                  int threads, int shared_bytes, cudaStream_t stream, const char* what) {
  launch_grid(kernel, arguments, dim3(static_cast<unsigned>(blocks / cluster * cluster)), cluster, threads,
              shared_bytes, stream, what);
}

// The same without shared memory or clusters, for a kernel with any parameters.
template <typename... Parameters, typename... Arguments>
void launch_overlapping(void (*kernel)(Parameters...), dim3 blocks, int threads, cudaStream_t stream,
                        const char* what, const Arguments&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = blocks;
  launch.blockDim = dim3(static_cast<unsigned>(threads));
  launch.stream = stream;
  launch.attrs = &attribute;
  launch.numAttrs = launches_overlap(what) ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&launch, kernel, static_cast<Parameters>(arguments)...), what);
}

}  // namespace hstu::cuda
