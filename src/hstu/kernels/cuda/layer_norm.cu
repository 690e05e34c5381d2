#include "hstu/kernels/cuda/norm_rows.cuh"
#include "hstu/kernels/layer_norm.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

// y = layer_norm(x), or x * sigmoid(layer_norm(x)).
template <bool swish, typename N>
struct Forward {
  std::int64_t width;
  float epsilon;
  const N* x;
  const float *weight, *bias;
  Target<N> y;
  float *mean, *rstd;

  template <int kGroups>
  __device__ void operator()(std::int64_t r) const {
    Row<kGroups> v;
    load_row<kGroups>(x + r * width, width, v);
    const RowStatistics s = row_statistics<kGroups>(v, width, epsilon);
    if (lane() == 0) mean[r] = s.mean, rstd[r] = s.rstd;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const std::int64_t c = column_of(g);
      float w[kGroup], b[kGroup];
      load_group(weight, c, width, w);
      load_group(bias, c, width, b);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const float n = (v[g][i] - s.mean) * s.rstd * w[i] + b[i];
        v[g][i] = swish ? v[g][i] * sigmoid_for<N>(n) : n;
      }
      put_group(y, r * width, c, width, v[g]);
    }
  }
};

template <bool swish, typename N>
struct Backward {
  std::int64_t width;
  const N *x, *dy;
  const float *weight, *bias, *mean, *rstd;
  Target<N> dx;

  template <int kGroups>
  __device__ void operator()(std::int64_t r, Row<kGroups>& dweight, Row<kGroups>& dbias) const {
    Row<kGroups> n, g;                // the normalised x; what reaches it, times the weight
    Row<swish ? kGroups : 1> direct;  // the part of dx that does not go through the norm
    load_row<kGroups>(x + r * width, width, n);
    load_row<kGroups>(dy + r * width, width, g);
    const float m = mean[r], s = rstd[r];
    float sum_g = 0, sum_gn = 0;
#pragma unroll
    for (int k = 0; k < kGroups; ++k) {
      const std::int64_t c = column_of(k);
      float w[kGroup], b[kGroup];
      load_group(weight, c, width, w);
      if constexpr (swish) load_group(bias, c, width, b);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const float v = n[k][i];
        n[k][i] = (v - m) * s;
        if constexpr (swish) {
          const float open = sigmoid_for<N>(n[k][i] * w[i] + b[i]);
          direct[k][i] = g[k][i] * open;
          g[k][i] *= v * open * (1 - open);
        }
        dweight[k][i] += g[k][i] * n[k][i];
        dbias[k][i] += g[k][i];
        g[k][i] *= w[i];
        sum_g += g[k][i];
        sum_gn += g[k][i] * n[k][i];
      }
    }
    if (dx.to == nullptr) return;
    const float average_g = warp_sum(sum_g) / static_cast<float>(width),
                average_gn = warp_sum(sum_gn) / static_cast<float>(width);
#pragma unroll
    for (int k = 0; k < kGroups; ++k) {
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        g[k][i] = s * (g[k][i] - average_g - n[k][i] * average_gn);
        if constexpr (swish) g[k][i] += direct[k][i];
      }
      put_group(dx, r * width, column_of(k), width, g[k]);
    }
  }
};

template <bool swish, typename T>
void forward(const LayerNormForward<T>& p, CudaStream stream) {
  using N = Native<T>;
  const Forward<swish, N> body{p.width, p.epsilon,     native(p.x), p.weight,
                               p.bias,  {native(p.y)}, p.mean,      p.rstd};
  for_each_norm_row<Native<T>>(p.rows, p.width, body, stream);
  check_launch("layer_norm");
}

template <bool swish, typename T>
void backward(const LayerNormBackward<T>& p, CudaStream stream) {
  using N = Native<T>;
  const Backward<swish, N> body{p.width, native(p.x), native(p.dy), p.weight,
                                p.bias,  p.mean,      p.rstd,       target(p.dx)};
  for_each_norm_row_with_sums<Native<T>>(p.rows, p.width, body, target(p.dweight), target(p.dbias), stream);
  check_launch("layer_norm_backward");
}

}  // namespace

template <typename T>
void layer_norm(const LayerNormForward<T>& p, CudaStream stream) {
  forward<false>(p, stream);
}
template <typename T>
void layer_norm_backward(const LayerNormBackward<T>& p, CudaStream stream) {
  backward<false>(p, stream);
}
template <typename T>
void swish_layer_norm(const LayerNormForward<T>& p, CudaStream stream) {
  forward<true>(p, stream);
}
template <typename T>
void swish_layer_norm_backward(const LayerNormBackward<T>& p, CudaStream stream) {
  backward<true>(p, stream);
}

template void layer_norm(const LayerNormForward<float>&, CudaStream);
template void layer_norm(const LayerNormForward<BFloat16>&, CudaStream);
template void layer_norm_backward(const LayerNormBackward<float>&, CudaStream);
template void layer_norm_backward(const LayerNormBackward<BFloat16>&, CudaStream);
template void swish_layer_norm(const LayerNormForward<float>&, CudaStream);
template void swish_layer_norm(const LayerNormForward<BFloat16>&, CudaStream);
template void swish_layer_norm_backward(const LayerNormBackward<float>&, CudaStream);
template void swish_layer_norm_backward(const LayerNormBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
