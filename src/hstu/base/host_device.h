// HSTU_HOST_DEVICE: an inline function that the host and GPUs share.
#pragma once

#ifdef __CUDACC__
#define HSTU_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define HSTU_HOST_DEVICE inline
#endif
