#include "hstu/kernels/cuda/norm_rows.cuh"
#include "hstu/kernels/layer_norm.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

// y = layer_norm(x), or x * sigmoid(layer_norm(x)).
template <bool swish, typename N, bool whole>
struct LayerForward {
  static constexpr int kAhead = 2;
  static constexpr bool kWhole = whole;
  float epsilon;
  const N* x;
  const float *weight, *bias;
  Target<N> y;
  float *mean, *rstd;

  __device__ Packed<N> load(std::uint32_t r, const Team<kWhole>& team) const {
    return load_packed<kWhole>(x + row_at(r, team.width()), team.column(), team.width());
  }
  __device__ void operator()(std::uint32_t r, Team<kWhole>& team, const Affine& affine,
                             const Packed<N>& row) const {
    const int c = team.column(), width = team.width();
    float v[kGroup];
    row.unpack(v);
    const RowStatistics s = row_statistics<N>(v, epsilon, team);
    if (c == 0) mean[r] = s.mean, rstd[r] = s.rstd;
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const float n = normalised<N>(v[i], s) * affine.weight[i] + affine.bias[i];
      v[i] = swish ? v[i] * sigmoid_for<N>(n) : n;
    }
    put_group<kWhole>(y, row_at(r, width), c, width, v);
  }
};

template <bool swish, typename N, bool whole>
struct LayerBackward {
  static constexpr int kAhead = 2;
  static constexpr bool kWhole = whole;
  const N *x, *dy;
  const float *weight, *bias, *mean, *rstd;
  Target<N> dx;

  struct Inputs {
    Packed<N> x, dy, before;  // before: what dx is added to, read as early as the others
    RowStatistics statistics{0, 0};
  };
  __device__ Inputs load(std::uint32_t r, const Team<kWhole>& team) const {
    const int c = team.column(), width = team.width();
    return {load_packed<kWhole>(x + row_at(r, width), c, width),
            load_packed<kWhole>(dy + row_at(r, width), c, width),
            dx.accumulate ? load_packed<kWhole>(dx.to + row_at(r, width), c, width) : Packed<N>(),
            {mean[r], rstd[r]}};
  }
  __device__ void operator()(std::uint32_t r, Team<kWhole>& team, const Affine& affine, const Inputs& inputs,
                             float (&dweight)[kGroup], float (&dbias)[kGroup]) const {
    const int c = team.column(), width = team.width();
    float n[kGroup], g[kGroup];  // the normalised x; what reaches it, times the weight
    float direct[kGroup] = {};   // the part of dx that does not go through the norm
    inputs.x.unpack(n);
    inputs.dy.unpack(g);
    if constexpr (swish) {
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const float open =
            sigmoid_for<N>(normalised<N>(n[i], inputs.statistics) * affine.weight[i] + affine.bias[i]);
        direct[i] = g[i] * open;
        g[i] *= n[i] * open * (1 - open);
      }
    }
    float2 sums{0, 0};
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      n[i] = normalised<N>(n[i], inputs.statistics);
      dweight[i] += g[i] * n[i];
      dbias[i] += g[i];
      g[i] *= affine.weight[i];
      sums.x += g[i];
      sums.y += g[i] * n[i];
    }
    if (dx.to == nullptr) return;  // all teams alike
    sums = team.sum(sums);
    const float average_g = sums.x * team.inverse_width(), average_gn = sums.y * team.inverse_width();
#pragma unroll
    for (int i = 0; i < kGroup; ++i)
      g[i] = inputs.statistics.rstd * (g[i] - average_g - n[i] * average_gn) + direct[i];
    inputs.before.unpack(n);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) g[i] += n[i];
    put_group<kWhole>(Target<N>{dx.to}, row_at(r, width), c, width, g);
  }
};

template <bool swish, bool whole, typename T>
void forward(const LayerNormForward<T>& p, CudaStream stream) {
  const LayerForward<swish, Native<T>, whole> body{p.epsilon,     native(p.x), p.weight, p.bias,
                                                   {native(p.y)}, p.mean,      p.rstd};
  for_each_norm_row(p.rows, p.width, body, stream);
}
template <bool swish, typename T>
void forward(const LayerNormForward<T>& p, CudaStream stream) {
  if constexpr (sizeof(T) == 2) {
    if (fills_warps(p.width, p.weight, p.bias) && is_whole(p.x, p.width, p.width) &&
        is_whole(p.y, p.width, p.width))
      return forward<swish, true>(p, stream);
  }
  forward<swish, false>(p, stream);
}

template <bool swish, bool whole, typename T>
void backward(const LayerNormBackward<T>& p, CudaStream stream) {
  const LayerBackward<swish, Native<T>, whole> body{native(p.x), native(p.dy), p.weight,    p.bias,
                                                    p.mean,      p.rstd,       target(p.dx)};
  for_each_norm_row_with_sums(p.rows, p.width, body, target(p.dweight), target(p.dbias), stream);
}
template <bool swish, typename T>
void backward(const LayerNormBackward<T>& p, CudaStream stream) {
  if constexpr (sizeof(T) == 2) {
    if (fills_warps(p.width, p.weight, p.bias) && is_whole(p.x, p.width, p.width) &&
        is_whole(p.dy, p.width, p.width) && is_whole(p.dx.to, p.width, p.width))
      return backward<swish, true>(p, stream);
  }
  backward<swish, false>(p, stream);
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
