#include "hstu/kernels/cuda/rows.cuh"
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

  __device__ void operator()(std::int64_t r) const {
    const RowStatistics s = row_statistics(x + r * width, width, epsilon);
    if (lane() == 0) mean[r] = s.mean, rstd[r] = s.rstd;
    for (std::int64_t c = kGroup * lane(); c < width; c += 32 * kGroup) {
      float v[kGroup], w[kGroup], b[kGroup];
      load_group(x + r * width, c, width, v);
      load_group(weight, c, width, w);
      load_group(bias, c, width, b);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const float n = (v[i] - s.mean) * s.rstd * w[i] + b[i];
        v[i] = swish ? v[i] * sigmoid(n) : n;
      }
      put_group(y, r * width, c, width, v);
    }
  }
};

// What reaches eight elements of a row: dn, the gradient of the affine result; n, the normalised element;
// gate, the part of dy that reaches x directly. All are 0 beyond the row.
struct Elements {
  float dn[kGroup], n[kGroup], gate[kGroup], weight[kGroup];
};

template <bool swish, typename N>
struct Backward {
  std::int64_t width;
  const N *x, *dy;
  const float *weight, *bias, *mean, *rstd;
  Target<N> dx;

  __device__ void elements(std::int64_t r, std::int64_t c, Elements& e) const {
    float v[kGroup], g[kGroup], b[kGroup];
    load_group(x + r * width, c, width, v);
    load_group(dy + r * width, c, width, g);
    load_group(weight, c, width, e.weight);
    if constexpr (swish) load_group(bias, c, width, b);
    const float m = mean[r], s = rstd[r];
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      e.n[i] = (v[i] - m) * s;
      e.dn[i] = g[i], e.gate[i] = 0;
      if constexpr (swish) {
        const float open = sigmoid(e.n[i] * e.weight[i] + b[i]);
        e.dn[i] = g[i] * v[i] * open * (1 - open);
        e.gate[i] = g[i] * open;
      }
    }
  }
  __device__ void operator()(std::int64_t r, float* sums) const {
    Elements e;
    float sum_g = 0, sum_gn = 0;
    for (std::int64_t c = kGroup * lane(); c < width; c += 32 * kGroup) {
      elements(r, c, e);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        sum_g += e.dn[i] * e.weight[i];
        sum_gn += e.dn[i] * e.weight[i] * e.n[i];
        if (sums != nullptr) {
          sums[sum_slot(c) + 32 * i] += e.dn[i] * e.n[i];
          sums[padded(width) + sum_slot(c) + 32 * i] += e.dn[i];
        }
      }
    }
    if (dx.to == nullptr) return;
    const float average_g = warp_sum(sum_g) / static_cast<float>(width),
                average_gn = warp_sum(sum_gn) / static_cast<float>(width);
    for (std::int64_t c = kGroup * lane(); c < width; c += 32 * kGroup) {
      elements(r, c, e);
      float result[kGroup];
#pragma unroll
      for (int i = 0; i < kGroup; ++i)
        result[i] = rstd[r] * (e.dn[i] * e.weight[i] - average_g - e.n[i] * average_gn) + e.gate[i];
      put_group(dx, r * width, c, width, result);
    }
  }
};

template <bool swish, typename T>
void forward(const LayerNormForward<T>& p, CudaStream stream) {
  using N = Native<T>;
  const Forward<swish, N> body{p.width, p.epsilon,     native(p.x), p.weight,
                               p.bias,  {native(p.y)}, p.mean,      p.rstd};
  for_each_row(p.rows, body, stream);
  check_launch("layer_norm");
}

template <bool swish, typename T>
void backward(const LayerNormBackward<T>& p, CudaStream stream) {
  using N = Native<T>;
  const Backward<swish, N> body{p.width, native(p.x), native(p.dy), p.weight,
                                p.bias,  p.mean,      p.rstd,       target(p.dx)};
  for_each_row_with_sums(p.rows, p.width, body, target(p.dweight), target(p.dbias), stream);
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
