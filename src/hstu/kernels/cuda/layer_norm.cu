#include "hstu/kernels/cuda/norm_rows.cuh"
#include "hstu/kernels/layer_norm.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

// y = layer_norm(x), or x * sigmoid(layer_norm(x)).
template <bool swish, typename N>
struct Forward {
  static constexpr int kRows = 2;
  std::int64_t width;
  float epsilon;
  const N* x;
  const float *weight, *bias;
  Target<N> y;
  float *mean, *rstd;

  __device__ Packed<N> load(std::int64_t r, std::int64_t c) const {
    return load_packed(x + r * width, c, width);
  }
  __device__ void operator()(const RowsAtOnce& at, Team& team, const Affine& affine,
                             const Packed<N> (&row)[kRows]) const {
    const std::int64_t c = team.column();
    float v[kRows][kGroup];
#pragma unroll
    for (int k = 0; k < kRows; ++k) row[k].unpack(v[k]);
    const RowStatistics<kRows> s = row_statistics(v, width, epsilon, team);
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (!at.has(k)) break;
      if (c == 0) mean[at[k]] = s.mean[k], rstd[at[k]] = s.rstd[k];
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const float n = (v[k][i] - s.mean[k]) * s.rstd[k] * affine.weight[i] + affine.bias[i];
        v[k][i] = swish ? v[k][i] * sigmoid_for<N>(n) : n;
      }
      put_group(y, at[k] * width, c, width, v[k]);
    }
  }
};

template <bool swish, typename N>
struct Backward {
  static constexpr int kRows = 2;
  std::int64_t width;
  const N *x, *dy;
  const float *weight, *bias, *mean, *rstd;
  Target<N> dx;

  struct Inputs {
    Packed<N> x, dy;
    float mean = 0, rstd = 0;
  };
  __device__ Inputs load(std::int64_t r, std::int64_t c) const {
    return {load_packed(x + r * width, c, width), load_packed(dy + r * width, c, width), mean[r], rstd[r]};
  }
  __device__ void operator()(const RowsAtOnce& at, Team& team, const Affine& affine,
                             const Inputs (&inputs)[kRows], float (&dweight)[kGroup],
                             float (&dbias)[kGroup]) const {
    const std::int64_t c = team.column();
    // The normalised x; what reaches it, times the weight; the part of dx that does not go through the norm.
    float n[kRows][kGroup], g[kRows][kGroup], direct[kRows][kGroup] = {};
    float sums[2 * kRows] = {};
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const float m = inputs[k].mean, s = inputs[k].rstd;
      inputs[k].x.unpack(n[k]);
      inputs[k].dy.unpack(g[k]);
      if constexpr (swish) {
#pragma unroll
        for (int i = 0; i < kGroup; ++i) {
          const float open = sigmoid_for<N>((n[k][i] - m) * s * affine.weight[i] + affine.bias[i]);
          direct[k][i] = g[k][i] * open;
          g[k][i] *= n[k][i] * open * (1 - open);
        }
      }
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        n[k][i] = (n[k][i] - m) * s;
        dweight[i] += g[k][i] * n[k][i];
        dbias[i] += g[k][i];
        g[k][i] *= affine.weight[i];
        sums[2 * k] += g[k][i];
        sums[2 * k + 1] += g[k][i] * n[k][i];
      }
    }
    if (dx.to == nullptr) return;  // all teams alike
    team.sum(sums);
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (!at.has(k)) break;
      const float average_g = sums[2 * k] / static_cast<float>(width),
                  average_gn = sums[2 * k + 1] / static_cast<float>(width);
#pragma unroll
      for (int i = 0; i < kGroup; ++i)
        g[k][i] = inputs[k].rstd * (g[k][i] - average_g - n[k][i] * average_gn) + direct[k][i];
      put_group(dx, at[k] * width, c, width, g[k]);
    }
  }
};

template <bool swish, typename T>
void forward(const LayerNormForward<T>& p, CudaStream stream) {
  using N = Native<T>;
  const Forward<swish, N> body{p.width, p.epsilon,     native(p.x), p.weight,
                               p.bias,  {native(p.y)}, p.mean,      p.rstd};
  for_each_norm_row(p.rows, p.width, body, stream);
  check_launch("layer_norm");
}

template <bool swish, typename T>
void backward(const LayerNormBackward<T>& p, CudaStream stream) {
  using N = Native<T>;
  const Backward<swish, N> body{p.width, native(p.x), native(p.dy), p.weight,
                                p.bias,  p.mean,      p.rstd,       target(p.dx)};
  for_each_norm_row_with_sums(p.rows, p.width, body, target(p.dweight), target(p.dbias), stream);
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
