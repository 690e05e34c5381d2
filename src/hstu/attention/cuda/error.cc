#include "hstu/attention/cuda/error.h"

#include "hstu/base/error.h"

namespace hstu::cuda {

void check_cuda(cudaError_t status, const char* what) {
  check(status != cudaErrorNoDevice && status != cudaErrorInsufficientDriver,
        "{}: no NVIDIA GPU can be used here (CUDA says: {}); nvidia-smi lists the GPUs and the driver's "
        "version",
        what, cudaGetErrorString(status));
  check(status == cudaSuccess, "{}: CUDA says: {}", what, cudaGetErrorString(status));
}

}  // namespace hstu::cuda
