#include <vector>

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

}  // namespace hstu::cuda
