// Nsight Systems and Nsight Compute can wait for a program to say from where to where they record
// (--capture-range=cudaProfilerApi, --profile-from-start off). Without them the calls do nothing.
#pragma once

#include "hstu/device/device.h"

namespace hstu {

// Of the work that any thread of the process puts on the GPU; nothing for the host.
void start_gpu_profilers(Device device);
void stop_gpu_profilers(Device device);

}  // namespace hstu
