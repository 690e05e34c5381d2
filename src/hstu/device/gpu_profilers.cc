#include "hstu/device/gpu_profilers.h"

#include "hstu/device/cuda_calls.h"

namespace hstu {

void start_gpu_profilers(Device device) {
  if (!device.is_host()) cuda::start_profilers();
}

void stop_gpu_profilers(Device device) {
  if (!device.is_host()) cuda::stop_profilers();
}

}  // namespace hstu
