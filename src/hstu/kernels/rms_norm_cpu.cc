#include <cmath>
#include <vector>

#include "hstu/base/threads.h"
#include "hstu/kernels/dot.h"
#include "hstu/kernels/reduce.h"
#include "hstu/kernels/rms_norm.h"

namespace hstu::kernels {

template <typename T>
void rms_norm(const RmsNorm<T>& p, HostStream) {
  const std::int64_t n = p.width;
  parallel_blocks(p.rows, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* const x = p.x + r * n;
      const T factor = T(1) / std::sqrt(dot(x, x, n) / static_cast<T>(n) + p.epsilon);
      p.factor[r] = factor;
      for (std::int64_t c = 0; c < n; ++c) p.y[r * n + c] = x[c] * factor * p.weight[c];
    }
  });
}

// With n = x factor and g = dy weight: dx = (g - n mean(n g)) factor, dweight = the sum over rows of dy n.
template <typename T>
void rms_norm_backward(const RmsNormBackward<T>& p, HostStream) {
  const std::int64_t n = p.width;
  std::vector<T> total(static_cast<std::size_t>(n));
  sum_over_rows(p.rows, n, Gradient<T>{total.data()}, [&](std::int64_t begin, std::int64_t end, T* sums) {
    std::vector<T> scaled(static_cast<std::size_t>(n));
    for (std::int64_t r = begin; r < end; ++r) {
      const T *const x = p.x + r * n, *const dy = p.dy + r * n;
      const T factor = p.factor[r];
      for (std::int64_t c = 0; c < n; ++c) {
        scaled[static_cast<std::size_t>(c)] = dy[c] * p.weight[c];
        sums[c] += dy[c] * x[c] * factor;
      }
      if (p.dx.to == nullptr) continue;
      const T along = dot(x, scaled.data(), n) * factor * factor / static_cast<T>(n);
      T* const dx = p.dx.to + r * n;
      for (std::int64_t c = 0; c < n; ++c) {
        const T slope = (scaled[static_cast<std::size_t>(c)] - x[c] * along) * factor;
        dx[c] = p.dx.accumulate ? dx[c] + slope : slope;
      }
    }
  });
  put_gradient(total.data(), n, p.dweight);
}

template void rms_norm(const RmsNorm<float>&, HostStream);
template void rms_norm(const RmsNorm<double>&, HostStream);
template void rms_norm_backward(const RmsNormBackward<float>&, HostStream);
template void rms_norm_backward(const RmsNormBackward<double>&, HostStream);

}  // namespace hstu::kernels
