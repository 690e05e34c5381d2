#include "hstu/kernels/cuda/norm_rows.cuh"
#include "hstu/kernels/rms_norm.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

template <typename N, bool whole>
struct RmsForward {
  static constexpr int kAhead = 2;
  static constexpr bool kWhole = whole;
  float epsilon;
  const N* x;
  const float* weight;
  Target<N> y;
  float* factor;

  __device__ Packed<N> load(std::uint32_t r, const Team<kWhole>& team) const {
    return load_packed<kWhole>(x + row_at(r, team.width()), team.column(), team.width());
  }
  __device__ void operator()(std::uint32_t r, Team<kWhole>& team, const Affine& affine,
                             const Packed<N>& row) const {
    const int c = team.column(), width = team.width();
    float v[kGroup], squares = 0;
    row.unpack(v);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) squares += v[i] * v[i];
    const float scale = rsqrtf(team.sum({squares, 0}).x * team.inverse_width() + epsilon);
    if (c == 0) factor[r] = scale;
#pragma unroll
    for (int i = 0; i < kGroup; ++i) v[i] *= scale * affine.weight[i];
    put_group<kWhole>(y, row_at(r, width), c, width, v);
  }
};

template <typename N, bool whole>
struct RmsBackward {
  static constexpr int kAhead = 2;
  static constexpr bool kWhole = whole;
  const N *x, *dy;
  const float *weight, *factor;
  Target<N> dx;

  struct Inputs {
    Packed<N> x, dy;
    float factor = 0;
  };
  __device__ Inputs load(std::uint32_t r, const Team<kWhole>& team) const {
    const int c = team.column(), width = team.width();
    return {load_packed<kWhole>(x + row_at(r, width), c, width),
            load_packed<kWhole>(dy + row_at(r, width), c, width), factor[r]};
  }
  // The second sum is that of a bias, which this norm has not.
  __device__ void operator()(std::uint32_t r, Team<kWhole>& team, const Affine& affine, const Inputs& inputs,
                             float (&dweight)[kGroup], float (&/*dbias*/)[kGroup]) const {
    const int c = team.column(), width = team.width();
    float n[kGroup], g[kGroup], along = 0;  // the normalised x; what reaches it, times the weight
    inputs.x.unpack(n);
    inputs.dy.unpack(g);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      n[i] *= inputs.factor;
      dweight[i] += g[i] * n[i];
      g[i] *= affine.weight[i];
      along += g[i] * n[i];
    }
    if (dx.to == nullptr) return;  // all teams alike
    const float mean = team.sum({along, 0}).x * team.inverse_width();
#pragma unroll
    for (int i = 0; i < kGroup; ++i) g[i] = inputs.factor * (g[i] - n[i] * mean);
    put_group<kWhole>(dx, row_at(r, width), c, width, g);
  }
};

template <bool whole, typename T>
void forward(const RmsNorm<T>& p, CudaStream stream) {
  using N = Native<T>;
  for_each_norm_row(p.rows, p.width,
                    RmsForward<N, whole>{p.epsilon, native(p.x), p.weight, {native(p.y)}, p.factor}, stream);
}

template <bool whole, typename T>
void backward(const RmsNormBackward<T>& p, CudaStream stream) {
  using N = Native<T>;
  for_each_norm_row_with_sums(
      p.rows, p.width, RmsBackward<N, whole>{native(p.x), native(p.dy), p.weight, p.factor, target(p.dx)},
      target(p.dweight), Target<float>(), stream);
}

}  // namespace

template <typename T>
void rms_norm(const RmsNorm<T>& p, CudaStream stream) {
  if constexpr (sizeof(T) == 2) {
    if (fills_warps(p.width, p.weight) && is_whole(p.x, p.width, p.width) && is_whole(p.y, p.width, p.width))
      return forward<true>(p, stream);
  }
  forward<false>(p, stream);
}

template <typename T>
void rms_norm_backward(const RmsNormBackward<T>& p, CudaStream stream) {
  if constexpr (sizeof(T) == 2) {
    if (fills_warps(p.width, p.weight) && is_whole(p.x, p.width, p.width) &&
        is_whole(p.dy, p.width, p.width) && is_whole(p.dx.to, p.width, p.width))
      return backward<true>(p, stream);
  }
  backward<false>(p, stream);
}

template void rms_norm(const RmsNorm<float>&, CudaStream);
template void rms_norm(const RmsNorm<BFloat16>&, CudaStream);
template void rms_norm_backward(const RmsNormBackward<float>&, CudaStream);
template void rms_norm_backward(const RmsNormBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
