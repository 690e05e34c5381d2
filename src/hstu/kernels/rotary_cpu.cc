#include <cmath>
#include <vector>

#include "hstu/base/threads.h"
#include "hstu/kernels/reduce.h"
#include "hstu/kernels/rotary.h"

namespace hstu::kernels {

template <typename T>
void rotary(const Rotary<T>& p, HostStream) {
  const std::int64_t half = p.head_dim / 2;
  std::vector<double> rates(static_cast<std::size_t>(half));
  for (std::int64_t i = 0; i < half; ++i)
    rates[static_cast<std::size_t>(i)] =
        (p.back ? -1 : 1) * std::pow(p.base, -2.0 * static_cast<double>(i) / static_cast<double>(p.head_dim));
  parallel_blocks(p.rows, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle = p.position[r] * rates[static_cast<std::size_t>(i)];
        const T cosine = static_cast<T>(std::cos(angle)), sine = static_cast<T>(std::sin(angle));
        for (std::int64_t h = 0; h < p.heads; ++h) {
          const T* const x = p.x + r * p.x_stride + h * p.head_dim + i;
          T* const y = p.y.to + r * p.y_stride + h * p.head_dim + i;
          const T first = x[0] * cosine - x[half] * sine, second = x[0] * sine + x[half] * cosine;
          y[0] = p.y.accumulate ? y[0] + first : first;
          y[half] = p.y.accumulate ? y[half] + second : second;
        }
      }
    }
  });
}

template void rotary(const Rotary<float>&, HostStream);
template void rotary(const Rotary<double>&, HostStream);

}  // namespace hstu::kernels
