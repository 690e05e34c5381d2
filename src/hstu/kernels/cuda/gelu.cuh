// gelu (activation.h) for results in 16 bits, two at a time: all kernels have the same bits.
#pragma once

#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels::cuda {

// The normal distribution function to 0.0013 of it above -5, and to 1e-7 below: the sigmoid of its logit, of
// which the polynomial is the closest of its degree from -5 to 5.
__device__ inline float2 fast_normal_distribution(float2 x) {
  const auto logit = [](float v) {
    const float t = v * v;
    return v * fmaf(fmaf(fmaf(9.031708e-6f, t, -9.8669436e-4f), t, 0.075827748f), t, 1.5926079f);
  };
  float2 both{logit(x.x), logit(x.y)};
  return fast_sigmoids(both);
}

__device__ inline float2 fast_gelu(float2 x) {
  const float2 s = fast_normal_distribution(x);
  return {x.x * s.x, x.y * s.y};
}

struct GeluAndSlope {
  float2 value, slope;
};
__device__ inline GeluAndSlope fast_gelu_and_slope(float2 x) {
  const auto density = [](float v) { return 0.39894228f * __expf(-0.5f * (v * v)); };
  const float2 s = fast_normal_distribution(x);
  return {{x.x * s.x, x.y * s.y}, {fmaf(x.x, density(x.x), s.x), fmaf(x.y, density(x.y), s.y)}};
}

}  // namespace hstu::kernels::cuda
