// The update of dense parameters, element by element: one formula for the host and for GPUs.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "hstu/base/host_device.h"
#include "hstu/device/stream.h"

namespace hstu {

// What the parameters of one update share.
struct UpdateNumbers {
  bool is_adam = true;  // otherwise SGD
  float lr, momentum;
  float beta1, rest1, beta2, rest2;
  float rate;  // lr / (1 - beta1^t)
  float root;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  float coupled;  // weight decay added to the gradient
  float keep;     // 1 - lr * decoupled weight decay
  float gradient_scale;
};

// Of one parameter.
struct DenseUpdate {
  std::int64_t end = 0;  // number of elements
  const float* gradient = nullptr;
  float* value = nullptr;
  float* m = nullptr;  // Adam; SGD with momentum
  float* v = nullptr;  // Adam
};

// What the check of an update found (update_check.h).
struct UpdateFacts {
  double loss = 0, gradient_norm = 0;
  bool is_updated = false;
};

// Elements [begin, end) in steps of `stride`. Source of the formulas: dense_optimizer.h.
HSTU_HOST_DEVICE void update_elements(const UpdateNumbers& s, const DenseUpdate& u, std::int64_t begin,
                                      std::int64_t end, std::int64_t stride = 1) {
  if (s.is_adam) {
    for (std::int64_t i = begin; i < end; i += stride) {
      const float g = s.gradient_scale * u.gradient[i] + s.coupled * u.value[i];
      u.m[i] = s.beta1 * u.m[i] + s.rest1 * g;
      u.v[i] = s.beta2 * u.v[i] + s.rest2 * g * g;
      u.value[i] = s.keep * u.value[i] - s.rate * u.m[i] / (std::sqrt(u.v[i]) * s.root + s.epsilon);
    }
  } else {
    for (std::int64_t i = begin; i < end; i += stride) {
      float g = s.gradient_scale * u.gradient[i] + s.coupled * u.value[i];
      if (u.m != nullptr) g = u.m[i] = s.momentum * u.m[i] + g;
      u.value[i] -= s.lr * g;
    }
  }
}

namespace cuda {

// All throw Error in a build without CUDA.

// `factor` (1), in the GPU's memory, replaces the gradient scale; NaN there: nothing is updated. Null: none.
void update_dense(const UpdateNumbers& numbers, std::span<const DenseUpdate> updates, const float* factor,
                  CudaStream stream);

// sums (lists): of the squares of each list of numbers, all on the stream's device, in double and in a fixed
// order.
struct FloatList {
  const float* values = nullptr;
  std::int64_t size = 0;
};
void sums_of_squares(std::span<const FloatList> lists, double* sums, CudaStream stream);

// UpdateCheck::judge(): sums (count) of squares, those of the dense parameters' gradients first. Writes
// `factor` (1), and `facts` in page-locked memory.
struct UpdateJudgement {
  const double* sums = nullptr;
  std::int64_t parameters = 0, count = 0;
  const float* loss = nullptr;  // (1)
  double max_norm = 0;
  float* factor = nullptr;
  UpdateFacts* facts = nullptr;
};
void judge_update(const UpdateJudgement& judgement, CudaStream stream);

}  // namespace cuda
}  // namespace hstu
