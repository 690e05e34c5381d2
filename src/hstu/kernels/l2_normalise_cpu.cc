#include <algorithm>
#include <cmath>

#include "hstu/base/threads.h"
#include "hstu/kernels/dot.h"
#include "hstu/kernels/l2_normalise.h"
#include "hstu/kernels/reduce.h"

namespace hstu::kernels {
template <typename T>
void l2_normalise(const L2Normalise<T>& p, HostStream) {
  const std::int64_t n = p.width;
  parallel_blocks(p.rows, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* const x = p.x + r * n;
      p.norm[r] = std::sqrt(dot(x, x, n));
      const T factor = T(1) / std::max(p.norm[r], p.epsilon);
      for (std::int64_t c = 0; c < n; ++c) p.y[r * n + c] = x[c] * factor;
    }
  });
}

template <typename T>
void l2_normalise_backward(const L2NormaliseBackward<T>& p, HostStream) {
  if (p.dx.to == nullptr) return;
  const std::int64_t n = p.width;
  parallel_blocks(p.rows, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* const x = p.x + r * n;
      const T* const dy = p.dy + r * n;
      T* const dx = p.dx.to + r * n;
      const T norm = p.norm[r];
      const bool is_short = norm < p.epsilon;
      const T factor = T(1) / (is_short ? p.epsilon : norm);
      const T along = is_short ? T(0) : dot(x, dy, n) * factor * factor;
      if (p.dx.accumulate) {
        for (std::int64_t c = 0; c < n; ++c) dx[c] += (dy[c] - x[c] * along) * factor;
      } else {
        for (std::int64_t c = 0; c < n; ++c) dx[c] = (dy[c] - x[c] * along) * factor;
      }
    }
  });
}

template void l2_normalise(const L2Normalise<float>&, HostStream);
template void l2_normalise(const L2Normalise<double>&, HostStream);
template void l2_normalise_backward(const L2NormaliseBackward<float>&, HostStream);
template void l2_normalise_backward(const L2NormaliseBackward<double>&, HostStream);

}  // namespace hstu::kernels
