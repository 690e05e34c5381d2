// Sums of the parts that blocks leave in memory, in a fixed order: gradients of parameters.
#pragma once

#include <span>

#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels::cuda {

// One sum: element i of `to` = or += the sum over p of parts[p * stride + i], for i below `size`.
struct PartSum {
  const float* parts = nullptr;
  std::int64_t count = 0, stride = 0, size = 0;
  Target<float> to;  // rows of `width` elements, `to_stride` apart; nothing is done without it
  std::int64_t width = 0, to_stride = 0;
};

// A vector of `size` elements.
inline PartSum sum_of(const float* parts, std::int64_t count, std::int64_t stride, std::int64_t size,
                      Target<float> to) {
  return {parts, count, stride, size, to, size, size};
}

// All of them, whose parts are in `memory`. Where launches are kept and all targets are late, they join the
// sums of other operations in one launch at the end (LaunchGroups::Late).
void add_parts(std::span<const PartSum> sums, Scratch<float> memory, CudaStream stream);

}  // namespace hstu::kernels::cuda
