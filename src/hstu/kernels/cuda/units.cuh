// Copies of rows in units of 16 bytes where addresses, widths and distances of rows are multiples of 16
// bytes.
#pragma once

#include <cstdint>

#include "hstu/kernels/cuda/launch.cuh"

namespace hstu::kernels::cuda {

// bytes: several sizes in one, by |.
template <typename... Addresses>
bool are_whole_units(std::int64_t bytes, const Addresses*... at) {
  return bytes % 16 == 0 && ((reinterpret_cast<std::uintptr_t>(at) % 16 == 0) && ...);
}

inline constexpr int kUnitsOfThread = 4;  // all of which it loads before it stores the first
inline constexpr std::int64_t kUnitsOfBlock = kUnitsOfThread * kThreads;

// rows * width units, the part of the block-th block of them: *y_at(row, column) = *x_at(row, column).
template <typename Unit, typename From, typename To>
__device__ void copy_units(unsigned block, std::int64_t rows, std::int64_t width, const From& x_at,
                           const To& y_at) {
  const std::int64_t n = rows * width, first = block * kUnitsOfBlock + threadIdx.x;
  // 32 bits where they are enough: a division of 64 bits takes longer than the copy.
  const auto place = [&](std::int64_t at, const auto& use) {
    if (n <= 0xffffffff) {
      const unsigned row = static_cast<unsigned>(at) / static_cast<unsigned>(width);
      use(static_cast<std::int64_t>(row), at - std::int64_t{row} * width);
    } else {
      use(at / width, at % width);
    }
  };
  Unit unit[kUnitsOfThread];
#pragma unroll
  for (int i = 0; i < kUnitsOfThread; ++i) {
    const std::int64_t at = first + i * kThreads;
    if (at < n) place(at, [&](std::int64_t row, std::int64_t column) { unit[i] = *x_at(row, column); });
  }
#pragma unroll
  for (int i = 0; i < kUnitsOfThread; ++i) {
    const std::int64_t at = first + i * kThreads;
    if (at < n) place(at, [&](std::int64_t row, std::int64_t column) { *y_at(row, column) = unit[i]; });
  }
}

}  // namespace hstu::kernels::cuda
