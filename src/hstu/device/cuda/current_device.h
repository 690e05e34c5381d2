// The GPU that is the calling thread's current one.
#pragma once

#include <cuda_runtime_api.h>

#include "hstu/device/cuda/check.h"

namespace hstu::cuda {

// `what` needs it: for the message of an error.
inline int current_device_attribute(cudaDeviceAttr attribute, const char* what) {
  int device = 0, value = 0;
  check_cuda(cudaGetDevice(&device), what);
  check_cuda(cudaDeviceGetAttribute(&value, attribute, device), what);
  return value;
}

// Makes a GPU the current one for a scope.
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
