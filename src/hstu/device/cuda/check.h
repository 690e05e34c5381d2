// A failed CUDA call becomes an Error that names the call.
#pragma once

#include <cuda_runtime_api.h>

namespace hstu::cuda {

void check_cuda(cudaError_t status, const char* what);

}  // namespace hstu::cuda
