#include <map>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "hstu/base/error.h"
#include "hstu/device/cuda/check.h"
#include "hstu/device/cuda_calls.h"
#include "hstu/device/launch_groups.h"
#include "hstu/device/launch_recording.h"

namespace hstu::cuda {

void launch_kernel(const LaunchShape& shape, std::span<const LaunchArgument> arguments, CUstream_st* stream) {
  if (LaunchList* const recorded = LaunchRecording::that_records(stream))
    return recorded->add(shape, arguments);
  if (LaunchGroups* const groups = LaunchGroups::that_keep(stream)) return groups->keep(shape, arguments);
  // The driver takes pointers to what may be written, and writes nothing.
  std::vector<void*> pointers;
  pointers.reserve(arguments.size());
  for (const LaunchArgument argument : arguments) pointers.push_back(const_cast<std::byte*>(argument.data()));
  put_on_stream(shape, pointers.data(), stream);
}

void allow_shared_memory(const void* kernel, int bytes, const char* what) {
  // The driver takes longer to hear the same number again.
  thread_local std::map<std::pair<int, const void*>, int> allowed;  // by GPU and kernel
  int device = 0;
  check_cuda(cudaGetDevice(&device), what);
  int& before = allowed[{device, kernel}];
  if (before == bytes) return;
  require(before == 0, "{}: a kernel's shared memory became {} bytes in place of {}", what, bytes, before);
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), what);
  before = bytes;
}

}  // namespace hstu::cuda
