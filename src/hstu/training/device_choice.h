// Where a configuration's model computes.
#pragma once

#include <string>
#include <string_view>

#include "hstu/device/device.h"
#include "hstu/tensor/context.h"

namespace hstu {

struct DeviceChoice {
  Device device;
  std::string why;  // one line for people
};

// `word`: "host", "cuda", "cuda:N", or "auto": the first GPU if this program has kernels and finds a GPU that
// runs them, otherwise the host. Throws UsageError for another word and Error for a GPU that cannot be used.
DeviceChoice choose_device(std::string_view word);

// The host's context, or a new one of a GPU, which becomes the current one of this thread.
Context open_device(Device device);

}  // namespace hstu
