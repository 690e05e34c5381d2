// What a piece of work makes a GPU do, counted by CUPTI: copies, synchronisations and the time in kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace hstu::testing {

struct GpuActivity {
  struct Copies {
    std::int64_t count = 0, bytes = 0;
  };
  Copies to_host, to_gpu;
  std::int64_t pageable_copies = 0;          // of either, from or to memory that is not page-locked
  std::int64_t device_synchronisations = 0;  // of the whole device
  std::int64_t kernels = 0;
};

// Counts while `work` runs; it must end with the GPU idle. Empty where CUPTI is missing; `why` then says so.
std::optional<GpuActivity> gpu_activity_of(const std::function<void()>& work, std::string& why);

}  // namespace hstu::testing
