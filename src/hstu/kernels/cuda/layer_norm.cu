#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/layer_norm.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

// y = layer_norm(x), or x * sigmoid(layer_norm(x)).
template <bool swish, typename N>
__global__ void norm_rows(std::int64_t rows, std::int64_t width, float epsilon, const N* x_rows,
                          const float* weight, const float* bias, N* y_rows, float* mean, float* rstd) {
  const std::int64_t r = warp_row();
  if (r >= rows) return;
  const N* const x = x_rows + r * width;
  const RowStatistics s = row_statistics(x, width, epsilon);
  if (lane() == 0) mean[r] = s.mean, rstd[r] = s.rstd;
  for (std::int64_t c = lane(); c < width; c += 32) {
    const float v = to_float(x[c]), n = (v - s.mean) * s.rstd * weight[c] + bias[c];
    y_rows[r * width + c] = from_float<N>(swish ? v * sigmoid(n) : n);
  }
}

template <typename N>
struct Inputs {
  std::int64_t rows, width;
  const N *x, *dy;
  const float *weight, *bias, *mean, *rstd;
};

// What reaches element (r, c): dn, the gradient of the affine result; n, the normalised element; gate, the
// part of dy that reaches x directly.
struct Element {
  float dn, n, gate;
};
template <bool swish, typename N>
__device__ Element element(const Inputs<N>& p, std::int64_t r, std::int64_t c) {
  const float v = to_float(p.x[r * p.width + c]), dy = to_float(p.dy[r * p.width + c]);
  const float n = (v - p.mean[r]) * p.rstd[r];
  if constexpr (!swish) return {dy, n, 0};
  const float s = sigmoid(n * p.weight[c] + p.bias[c]);
  return {dy * v * s * (1 - s), n, dy * s};
}

template <bool swish, typename N>
__global__ void norm_rows_backward(Inputs<N> p, Target<N> dx) {
  const std::int64_t r = warp_row();
  if (r >= p.rows) return;
  float sum_g = 0, sum_gn = 0;
  for (std::int64_t c = lane(); c < p.width; c += 32) {
    const Element e = element<swish>(p, r, c);
    sum_g += e.dn * p.weight[c];
    sum_gn += e.dn * p.weight[c] * e.n;
  }
  const float average_g = warp_sum(sum_g) / static_cast<float>(p.width),
              average_gn = warp_sum(sum_gn) / static_cast<float>(p.width);
  for (std::int64_t c = lane(); c < p.width; c += 32) {
    const Element e = element<swish>(p, r, c);
    dx.put(r * p.width + c, p.rstd[r] * (e.dn * p.weight[c] - average_g - e.n * average_gn) + e.gate);
  }
}

template <bool swish, typename N>
struct WeightTerm {
  Inputs<N> p;
  __device__ Pair operator()(std::int64_t r, std::int64_t c) const {
    const Element e = element<swish>(p, r, c);
    return {e.dn * e.n, e.dn};
  }
};

template <bool swish, typename T>
void forward(const LayerNormForward<T>& p, CudaStream stream) {
  if (p.rows == 0) return;
  norm_rows<swish><<<blocks_for(p.rows, kWarps), kThreads, 0, stream.handle>>>(
      p.rows, p.width, p.epsilon, native(p.x), p.weight, p.bias, native(p.y), p.mean, p.rstd);
  check_launch("layer_norm");
}

template <bool swish, typename T>
void backward(const LayerNormBackward<T>& p, CudaStream stream) {
  const Inputs<Native<T>> in{p.rows, p.width, native(p.x), native(p.dy), p.weight, p.bias, p.mean, p.rstd};
  if (p.rows > 0 && p.dx.to != nullptr) {
    norm_rows_backward<swish><<<blocks_for(p.rows, kWarps), kThreads, 0, stream.handle>>>(in, target(p.dx));
  }
  sum_columns(p.rows, p.width, target(p.dweight), target(p.dbias), WeightTerm<swish, Native<T>>{in}, stream);
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
