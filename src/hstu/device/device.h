// Where memory is and work runs: the host, or one GPU.
#pragma once

#include <string>
#include <string_view>

#include "hstu/base/error.h"

namespace hstu {

struct Device {
  enum class Kind { host, cuda };
  Kind kind = Kind::host;
  int index = 0;  // which GPU, as the CUDA runtime numbers them; 0 for the host

  static constexpr Device host() { return {}; }
  static constexpr Device cuda(int index) { return {Kind::cuda, index}; }
  constexpr bool is_host() const { return kind == Kind::host; }
  friend constexpr bool operator==(const Device&, const Device&) = default;
};

std::string to_string(Device device);  // "host", "cuda:1"
// "host", "cuda" (the first GPU) or "cuda:N". Throws UsageError for anything else.
Device parse_device(std::string_view text);

// Number of GPUs that this process can use: 0 in a build without CUDA and on a machine without a driver.
int cuda_device_count();

// "0000:1b:00.0": the place of a GPU in its machine, whatever number this process gives it.
std::string bus_address(Device device);

// Kernels and allocations of the calling thread go to `device` from now on: a thread that works on a GPU
// calls it once. Nothing happens for the host. Throws Error when the GPU cannot be used.
void make_current(Device device);

}  // namespace hstu

template <>
struct fmt::formatter<hstu::Device> : hstu::ToStringFormatter<hstu::Device> {};
