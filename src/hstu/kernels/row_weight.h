// The factor of a row's loss.
#pragma once

#include <cstdint>

#include "hstu/base/host_device.h"

namespace hstu::kernels {

// weights (rows), not negative; null: 1 for every row.
HSTU_HOST_DEVICE double weight_of(const float* weights, std::int64_t row) {
  return weights == nullptr ? 1.0 : static_cast<double>(weights[row]);
}

}  // namespace hstu::kernels
