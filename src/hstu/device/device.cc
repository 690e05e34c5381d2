#include "hstu/device/device.h"

#include <charconv>

#include "hstu/base/error.h"
#include "hstu/device/cuda_calls.h"

namespace hstu {

std::string to_string(Device device) {
  return device.is_host() ? "host" : fmt::format("cuda:{}", device.index);
}

Device parse_device(std::string_view text) {
  if (text == "host") return Device::host();
  if (text == "cuda") return Device::cuda(0);
  constexpr std::string_view kPrefix = "cuda:";
  if (text.starts_with(kPrefix)) {
    int index = -1;
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + kPrefix.size(), end, index);
    if (problem == std::errc() && stop == end && index >= 0) return Device::cuda(index);
  }
  fail_usage("unknown device \"{}\": expected host, cuda or cuda:N, where N is the number of a GPU", text);
}

int cuda_device_count() {
  return cuda::device_count();
}

std::string bus_address(Device device) {
  return cuda::bus_address(device.index);
}

void make_current(Device device) {
  if (!device.is_host()) cuda::make_current(device.index);
}

}  // namespace hstu
