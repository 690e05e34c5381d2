// Host memory for copies to a GPU.
#pragma once

#include <memory_resource>

#include "hstu/device/device.h"

namespace hstu {

// Where the host puts what it copies to `device`: page-locked memory for a GPU, which copies need to run
// beside the host's work; ordinary memory for the host. Page-locked memory is slow to get: keep it, or put a
// std::pmr pool in front. Its allocate() throws OutOfMemory. Lives as long as the process.
std::pmr::memory_resource* transfer_memory(Device device);

}  // namespace hstu
