#include <algorithm>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda_calls.h"
#include "hstu/device/launch_groups.h"

namespace hstu::cuda {

void launch_kernel(const LaunchShape& shape, std::span<const LaunchArgument> arguments, CUstream_st* stream) {
  if (LaunchGroups* const groups = LaunchGroups::that_keep(stream)) return groups->keep(shape, arguments);
  // The driver takes pointers to what may be written, and writes nothing.
  std::vector<void*> pointers;
  pointers.reserve(arguments.size());
  for (const LaunchArgument argument : arguments) pointers.push_back(const_cast<std::byte*>(argument.data()));
  put_on_stream(shape, pointers.data(), stream);
}

void allow_shared_memory(const void* kernel, int bytes, const char* what) {
  // The driver takes longer for the same answer than this list.
  thread_local std::vector<std::pair<int, const void*>> allowed;  // the GPU, the kernel
  int device = 0;
  check_cuda(cudaGetDevice(&device), what);
  const std::pair entry(device, kernel);
  if (std::find(allowed.begin(), allowed.end(), entry) != allowed.end()) return;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), what);
  allowed.push_back(entry);
}

}  // namespace hstu::cuda
