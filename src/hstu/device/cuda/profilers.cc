#include <cuda_profiler_api.h>

#include "hstu/device/cuda_calls.h"

namespace hstu::cuda {

void start_profilers() {
  cudaProfilerStart();
}

void stop_profilers() {
  cudaProfilerStop();
}

}  // namespace hstu::cuda
