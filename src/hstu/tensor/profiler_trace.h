// Ranges of a trace for NVIDIA's profilers (Nsight Systems, Nsight Compute), through NVTX.
#pragma once

#include "hstu/tensor/context.h"

namespace hstu {

// One object for the process: every range becomes an NVTX range of the calling thread. Without an attached
// profiler a range costs a few nanoseconds. nullptr if hstu was built without CUDA.
Trace* profiler_trace();

}  // namespace hstu
