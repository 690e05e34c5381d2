// The factor that clips gradients: one formula for the host and for GPUs.
#pragma once

#include <cmath>

#include "hstu/base/host_device.h"

namespace hstu {

// The factor for DenseOptimizer::step: min(1, max_norm / (norm + 1e-6)); 1 if max_norm is 0 (no clipping);
// NaN for a NaN norm.
HSTU_HOST_DEVICE double clip_scale(double norm, double max_norm) {
  if (std::isnan(norm)) return norm;
  const double scale = max_norm / (norm + 1e-6);
  return max_norm > 0.0 && scale < 1.0 ? scale : 1.0;
}

}  // namespace hstu
