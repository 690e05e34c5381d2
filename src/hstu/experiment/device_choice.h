// Where a configuration's model computes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hstu/device/device.h"
#include "hstu/options/options.h"
#include "hstu/tensor/context.h"

namespace hstu {

struct DeviceChoice {
  Device device;
  std::string why;  // one line for people
};

// `word`: "host", "cuda", "cuda:N", or "auto": the first GPU if this program has kernels and finds a GPU that
// runs them, otherwise the host. Throws UsageError for another word and Error for a GPU that cannot be used.
DeviceChoice choose_device(std::string_view word);

// The same for options.device. Throws UsageError for a precision or attention that the device does not
// have.
DeviceChoice choose_device(const RunOptions& options);

// The host's context, or a new one of a GPU, which becomes the current one of this thread and hands out at
// most `memory_limit` bytes (0: no limit). Ranges of its trace show in NVIDIA's profilers, if hstu was
// built with CUDA.
Context open_device(Device device, std::int64_t memory_limit = 0);

// FLOPs a second that `device` computes at most in this precision, from its data sheet: bf16 products of
// tensor cores, or fp32 outside of them, as the kernels compute. None for the host and where there is no data
// sheet.
std::optional<double> peak_flops(Device device, Precision precision);

}  // namespace hstu
