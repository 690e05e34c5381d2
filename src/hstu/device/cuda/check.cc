#include "hstu/device/cuda/check.h"

#include "hstu/base/error.h"

namespace hstu::cuda {

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // or the next launch would report it
  check(status != cudaErrorNoDevice && status != cudaErrorInsufficientDriver,
        "{}: no NVIDIA GPU can be used here (CUDA says: {}); nvidia-smi lists the GPUs and the driver's "
        "version",
        what, cudaGetErrorString(status));
  fail("{}: CUDA says: {}", what, cudaGetErrorString(status));
}

}  // namespace hstu::cuda
