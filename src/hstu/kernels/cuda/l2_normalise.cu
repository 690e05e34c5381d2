#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/l2_normalise.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

template <typename N>
__device__ float row_dot(const N* a, const N* b, std::int64_t width) {
  float v[kGroup], w[kGroup], sum = 0;
  for (std::int64_t c = kGroup * lane(); c < width; c += 32 * kGroup) {
    load_group(a, c, width, v);
    load_group(b, c, width, w);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) sum += v[i] * w[i];
  }
  return warp_sum(sum);
}

template <typename N>
struct Forward {
  std::int64_t width;
  float epsilon;
  const N* x;
  Target<N> y;
  float* norm;

  __device__ void operator()(std::int64_t r) const {
    const N* const row = x + r * width;
    const float length = sqrtf(row_dot(row, row, width)), factor = 1 / fmaxf(length, epsilon);
    if (lane() == 0) norm[r] = length;
    for (std::int64_t c = kGroup * lane(); c < width; c += 32 * kGroup) {
      float v[kGroup];
      load_group(row, c, width, v);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) v[i] *= factor;
      put_group(y, r * width, c, width, v);
    }
  }
};

template <typename N>
struct Backward {
  std::int64_t width;
  float epsilon;
  const N *x, *dy;
  const float* norm;
  Target<N> dx;

  __device__ void operator()(std::int64_t r) const {
    const N *const row = x + r * width, *const d = dy + r * width;
    const bool is_short = norm[r] < epsilon;
    const float factor = 1 / (is_short ? epsilon : norm[r]);
    const float along = is_short ? 0.0f : row_dot(row, d, width) * factor * factor;
    for (std::int64_t c = kGroup * lane(); c < width; c += 32 * kGroup) {
      float v[kGroup], g[kGroup];
      load_group(row, c, width, v);
      load_group(d, c, width, g);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) g[i] = (g[i] - v[i] * along) * factor;
      put_group(dx, r * width, c, width, g);
    }
  }
};

}  // namespace

template <typename T>
void l2_normalise(const L2Normalise<T>& p, CudaStream stream) {
  using N = Native<T>;
  for_each_row("L2 norm", p.rows, Forward<N>{p.width, p.epsilon, native(p.x), {native(p.y)}, p.norm}, stream);
}

template <typename T>
void l2_normalise_backward(const L2NormaliseBackward<T>& p, CudaStream stream) {
  if (p.dx.to == nullptr) return;
  using N = Native<T>;
  for_each_row("L2 norm, backward", p.rows,
               Backward<N>{p.width, p.epsilon, native(p.x), native(p.dy), p.norm, target(p.dx)}, stream);
}

template void l2_normalise(const L2Normalise<float>&, CudaStream);
template void l2_normalise(const L2Normalise<BFloat16>&, CudaStream);
template void l2_normalise_backward(const L2NormaliseBackward<float>&, CudaStream);
template void l2_normalise_backward(const L2NormaliseBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
