#include "hstu/kernels/cuda/norm_rows.cuh"
#include "hstu/kernels/l2_normalise.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

template <typename N, bool whole>
struct L2Forward {
  static constexpr int kAhead = 2;
  static constexpr bool kWhole = whole;
  float epsilon;
  const N* x;
  Target<N> y;
  float* norm;

  __device__ Packed<N> load(std::uint32_t r, const Team<kWhole>& team) const {
    return load_packed<kWhole>(x + row_at(r, team.width()), team.column(), team.width());
  }
  __device__ void operator()(std::uint32_t r, Team<kWhole>& team, const Packed<N>& row) const {
    const int c = team.column(), width = team.width();
    float v[kGroup], squares = 0;
    row.unpack(v);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) squares += v[i] * v[i];
    const float length = sqrtf(team.sum({squares, 0}).x), factor = 1 / fmaxf(length, epsilon);
    if (c == 0) norm[r] = length;
#pragma unroll
    for (int i = 0; i < kGroup; ++i) v[i] *= factor;
    put_group<kWhole>(y, row_at(r, width), c, width, v);
  }
};

template <typename N, bool whole>
struct L2Backward {
  static constexpr int kAhead = sizeof(N) == 2 ? 2 : 1;  // what fits into registers
  static constexpr bool kWhole = whole;
  float epsilon;
  const N *x, *dy;
  const float* norm;
  Target<N> dx;

  struct Inputs {
    Packed<N> x, dy;
    float norm = 0;
  };
  __device__ Inputs load(std::uint32_t r, const Team<kWhole>& team) const {
    const int c = team.column(), width = team.width();
    return {load_packed<kWhole>(x + row_at(r, width), c, width),
            load_packed<kWhole>(dy + row_at(r, width), c, width), norm[r]};
  }
  __device__ void operator()(std::uint32_t r, Team<kWhole>& team, const Inputs& inputs) const {
    const int c = team.column(), width = team.width();
    float v[kGroup], g[kGroup], product = 0;
    inputs.x.unpack(v);
    inputs.dy.unpack(g);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) product += v[i] * g[i];
    const bool is_short = inputs.norm < epsilon;
    const float factor = 1 / (is_short ? epsilon : inputs.norm);
    const float sum = team.sum({product, 0}).x, along = is_short ? 0.0f : sum * factor * factor;
#pragma unroll
    for (int i = 0; i < kGroup; ++i) g[i] = (g[i] - v[i] * along) * factor;
    put_group<kWhole>(dx, row_at(r, width), c, width, g);
  }
};

template <bool whole, typename T>
void forward(const L2Normalise<T>& p, CudaStream stream) {
  using N = Native<T>;
  for_each_norm_row(p.rows, p.width, L2Forward<N, whole>{p.epsilon, native(p.x), {native(p.y)}, p.norm},
                    stream);
}

template <bool whole, typename T>
void backward(const L2NormaliseBackward<T>& p, CudaStream stream) {
  using N = Native<T>;
  for_each_norm_row(p.rows, p.width,
                    L2Backward<N, whole>{p.epsilon, native(p.x), native(p.dy), p.norm, target(p.dx)}, stream);
}

}  // namespace

template <typename T>
void l2_normalise(const L2Normalise<T>& p, CudaStream stream) {
  if constexpr (sizeof(T) == 2) {
    if (fills_warps(p.width) && is_whole(p.x, p.width, p.width) && is_whole(p.y, p.width, p.width))
      return forward<true>(p, stream);
  }
  forward<false>(p, stream);
}

template <typename T>
void l2_normalise_backward(const L2NormaliseBackward<T>& p, CudaStream stream) {
  if (p.dx.to == nullptr) return;
  if constexpr (sizeof(T) == 2) {
    if (fills_warps(p.width) && is_whole(p.x, p.width, p.width) && is_whole(p.dy, p.width, p.width) &&
        is_whole(p.dx.to, p.width, p.width))
      return backward<true>(p, stream);
  }
  backward<false>(p, stream);
}

template void l2_normalise(const L2Normalise<float>&, CudaStream);
template void l2_normalise(const L2Normalise<BFloat16>&, CudaStream);
template void l2_normalise_backward(const L2NormaliseBackward<float>&, CudaStream);
template void l2_normalise_backward(const L2NormaliseBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
