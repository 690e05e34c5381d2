// The NVIDIA driver as the system has it, asked through libcuda.so.1 at run time: no CUDA toolkit is needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hstu/device/gpu_specs.h"

namespace hstu {

struct Gpu {
  std::string name;                // "NVIDIA H100 80GB HBM3"
  std::string compute_capability;  // "9.0"
  std::int64_t memory_bytes = 0;
  GpuClocks clocks;
};

struct NvidiaDriver {
  std::optional<std::string> version;       // "580.65.06", of the kernel module
  std::optional<std::string> cuda_version;  // "13.0": the newest CUDA the driver runs
  std::vector<Gpu> gpus;
  std::string problem;  // why no GPU can be used; "" when one can
};

NvidiaDriver nvidia_driver();

}  // namespace hstu
