#include "hstu/attention/cuda/error.h"

#include "hstu/base/error.h"

namespace hstu::cuda {

void check_cuda(cudaError_t status, const char* what) {
  check(status == cudaSuccess, "{}: CUDA says: {}", what, cudaGetErrorString(status));
}

}  // namespace hstu::cuda
