// Makes a GPU the calling thread's current one for a scope.
#pragma once

#include <cuda_runtime_api.h>

#include "hstu/device/cuda/check.h"

namespace hstu::cuda {

class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    check_cuda(cudaGetDevice(&before_), "asking for the current GPU");
    check_cuda(cudaSetDevice(device), "choosing a GPU");
  }
  ~CurrentDevice() { cudaSetDevice(before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
};

}  // namespace hstu::cuda
