#include "hstu/kernels/cuda/dropout.cuh"
#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/gate.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

// The factors of eight columns of each third of cat. One call draws those of a third where its groups begin
// at a multiple of 8; otherwise they are drawn one by one.
struct Factors {
  float u[kGroup], o[kGroup], y[kGroup];
};
__device__ void draw(const DropoutRows& dropout, std::uint64_t key, std::int64_t width, std::int64_t c,
                     Factors& f) {
  if (width % kGroup == 0) {
    dropout.factors(key, c / kGroup, f.u);
    dropout.factors(key, (width + c) / kGroup, f.o);
    dropout.factors(key, (2 * width + c) / kGroup, f.y);
    return;
  }
  for (int i = 0; i < kGroup; ++i) {
    f.u[i] = dropout.factor(key, c + i);
    f.o[i] = dropout.factor(key, width + c + i);
    f.y[i] = dropout.factor(key, 2 * width + c + i);
  }
}

template <typename N>
struct Forward {
  std::int64_t width;
  float epsilon;
  const N *u, *o;
  const float *weight, *bias;
  DropoutRows dropout;
  Target<N> cat;
  float *mean, *rstd;

  __device__ void operator()(std::int64_t r) const {
    const RowStatistics s = row_statistics(o + r * width, width, epsilon);
    if (lane() == 0) mean[r] = s.mean, rstd[r] = s.rstd;
    const std::uint64_t key = dropout.row(r);
    for (std::int64_t c = kGroup * lane(); c < width; c += 32 * kGroup) {
      Factors f;
      draw(dropout, key, width, c, f);
      float x[kGroup], v[kGroup], w[kGroup], b[kGroup], y[kGroup];
      load_group(u + r * width, c, width, x);
      load_group(o + r * width, c, width, v);
      load_group(weight, c, width, w);
      load_group(bias, c, width, b);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const float activated = x[i] * sigmoid(x[i]);
        y[i] = f.y[i] * activated * ((v[i] - s.mean) * s.rstd * w[i] + b[i]);
        x[i] = f.u[i] * activated;
        v[i] = f.o[i] * v[i];
      }
      put_group(cat, 3 * r * width, c, width, x);
      put_group(cat, 3 * r * width + width, c, width, v);
      put_group(cat, 3 * r * width + 2 * width, c, width, y);
    }
  }
};

template <typename N>
struct Backward {
  std::int64_t width;
  const N *u, *o;
  const float *weight, *bias, *mean, *rstd;
  DropoutRows dropout;
  const N* dcat;  // (rows, 3 * width)
  Target<N> du, d_o;

  __device__ void operator()(std::int64_t r, float* sums) const {
    const N* const dcat_row = dcat + 3 * r * width;
    const float m = mean[r], s = rstd[r];
    const std::uint64_t key = dropout.row(r);
    float x[kGroup], v[kGroup], w[kGroup], dy[kGroup];
    float sum_g = 0, sum_gn = 0;
    Factors f;
    // dn, the gradient of the normalised row, is dy times silu(u).
    for (std::int64_t c = kGroup * lane(); c < width; c += 32 * kGroup) {
      draw(dropout, key, width, c, f);
      load_group(u + r * width, c, width, x);
      load_group(o + r * width, c, width, v);
      load_group(weight, c, width, w);
      load_group(dcat_row + 2 * width, c, width, dy);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const float dn = dy[i] * f.y[i] * x[i] * sigmoid(x[i]), n = (v[i] - m) * s;
        sum_g += dn * w[i];
        sum_gn += dn * w[i] * n;
        if (sums != nullptr) {
          sums[sum_slot(c) + 32 * i] += dn * n;
          sums[padded(width) + sum_slot(c) + 32 * i] += dn;
        }
      }
    }
    const float average_g = warp_sum(sum_g) / static_cast<float>(width),
                average_gn = warp_sum(sum_gn) / static_cast<float>(width);
    for (std::int64_t c = kGroup * lane(); c < width; c += 32 * kGroup) {
      draw(dropout, key, width, c, f);
      float b[kGroup], d_activated[kGroup], d_passed[kGroup];
      load_group(u + r * width, c, width, x);
      load_group(o + r * width, c, width, v);
      load_group(weight, c, width, w);
      load_group(bias, c, width, b);
      load_group(dcat_row, c, width, d_activated);
      load_group(dcat_row + width, c, width, d_passed);
      load_group(dcat_row + 2 * width, c, width, dy);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const float open = sigmoid(x[i]), n = (v[i] - m) * s, g = dy[i] * f.y[i];
        const float reaches_silu = d_activated[i] * f.u[i] + g * (n * w[i] + b[i]);
        const float dn = g * x[i] * open;
        x[i] = reaches_silu * open * (1 + x[i] * (1 - open));
        v[i] = s * (dn * w[i] - average_g - n * average_gn) + d_passed[i] * f.o[i];
      }
      put_group(du, r * width, c, width, x);
      put_group(d_o, r * width, c, width, v);
    }
  }
};

}  // namespace

template <typename T>
void gate(const GateForward<T>& p, CudaStream stream) {
  const Forward<Native<T>> body{
      p.width,         p.epsilon, native(p.u), native(p.o), p.weight, p.bias, DropoutRows(p.dropout),
      {native(p.cat)}, p.mean,    p.rstd};
  for_each_row(p.rows, body, stream);
  check_launch("gate");
}

template <typename T>
void gate_backward(const GateBackward<T>& p, CudaStream stream) {
  const Backward<Native<T>> body{p.width,        native(p.u),  native(p.o),  p.weight,
                                 p.bias,         p.mean,       p.rstd,       DropoutRows(p.dropout),
                                 native(p.dcat), target(p.du), target(p.d_o)};
  for_each_row_with_sums(p.rows, p.width, body, target(p.dweight), target(p.dbias), stream);
  check_launch("gate_backward");
}

template void gate(const GateForward<float>&, CudaStream);
template void gate(const GateForward<BFloat16>&, CudaStream);
template void gate_backward(const GateBackward<float>&, CudaStream);
template void gate_backward(const GateBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
