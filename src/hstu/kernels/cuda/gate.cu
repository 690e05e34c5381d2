#include "hstu/kernels/cuda/norm_rows.cuh"
#include "hstu/kernels/gate.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

// What the kernels of a form need to know of it.
template <GateForm form>
struct Form {
  static constexpr bool kConcat = form == GateForm::concat;
  static constexpr std::int64_t kParts = gate_parts(form);
  static constexpr std::int64_t kProduct = kParts - 1;  // the part of y that has the product
};

template <GateForm form, typename N>
struct Forward : Form<form> {
  using Form<form>::kConcat, Form<form>::kParts, Form<form>::kProduct;
  std::int64_t width, u_stride;
  float epsilon;
  const N *u, *o;
  const float *weight, *bias;
  DropoutRows dropout;
  Target<N> y;
  float *mean, *rstd;

  __device__ void operator()(std::int64_t r, Team& team) const {
    const std::int64_t c = team.column(), first = kParts * r * width;
    float v[kGroup], x[kGroup], w[kGroup], b[kGroup], result[kGroup];
    load_group(o + r * width, c, width, v);
    load_group(u + r * u_stride, c, width, x);
    load_group(weight, c, width, w);
    load_group(bias, c, width, b);
    const RowStatistics s = row_statistics(v, width, epsilon, team);
    if (c == 0) mean[r] = s.mean, rstd[r] = s.rstd;
    if (c >= width) return;
    const std::uint64_t key = dropout.row(r);
    float f[kGroup];
    if constexpr (kConcat) {
      dropout.factors(key, c, f);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        x[i] *= sigmoid_for<N>(x[i]);
        result[i] = f[i] * x[i];
      }
      put_group(y, first, c, width, result);
      dropout.factors(key, width + c, f);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) result[i] = f[i] * v[i];
      put_group(y, first + width, c, width, result);
    }
    dropout.factors(key, kProduct * width + c, f);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) result[i] = f[i] * x[i] * ((v[i] - s.mean) * s.rstd * w[i] + b[i]);
    put_group(y, first + kProduct * width, c, width, result);
  }
};

template <GateForm form, typename N>
struct Backward : Form<form> {
  using Form<form>::kConcat, Form<form>::kParts, Form<form>::kProduct;
  std::int64_t width, u_stride, du_stride;
  const N *u, *o;
  const float *weight, *bias, *mean, *rstd;
  DropoutRows dropout;
  const N* dy;  // (rows, parts * width)
  Target<N> du, d_o;

  __device__ void operator()(std::int64_t r, Team& team, float (&dweight)[kGroup],
                             float (&dbias)[kGroup]) const {
    const std::int64_t c = team.column();
    const N* const dy_row = dy + kParts * r * width;
    float n[kGroup], x[kGroup], g[kGroup], w[kGroup],
        b[kGroup];                               // n: the normalised o; g: what reaches the product
    float through_u[kGroup], through_o[kGroup];  // the other parts of dy
    load_group(o + r * width, c, width, n);
    load_group(u + r * u_stride, c, width, x);
    load_group(dy_row + kProduct * width, c, width, g);
    if constexpr (kConcat) {
      load_group(dy_row, c, width, through_u);
      load_group(dy_row + width, c, width, through_o);
    }
    load_group(weight, c, width, w);
    load_group(bias, c, width, b);
    const float m = mean[r], s = rstd[r];
    const std::uint64_t key = dropout.row(r);
    float f[kGroup];
    dropout.factors(key, kProduct * width + c, f);
    float2 sums{0, 0};
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      g[i] *= f[i];
      n[i] = (n[i] - m) * s;
      const float dn = g[i] * activated(x[i]);
      sums.x += dn * w[i];
      sums.y += dn * w[i] * n[i];
      dweight[i] += dn * n[i];
      dbias[i] += dn;
    }
    sums = team.sum(sums);
    if (c >= width) return;
    const float average_g = sums.x / static_cast<float>(width),
                average_gn = sums.y / static_cast<float>(width);
    float d_o_group[kGroup];
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const float dn = g[i] * activated(x[i]);
      g[i] *= n[i] * w[i] + b[i];  // what reaches u through the product
      d_o_group[i] = s * (dn * w[i] - average_g - n[i] * average_gn);
    }
    if constexpr (kConcat) {
      dropout.factors(key, c, f);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) g[i] = (through_u[i] * f[i] + g[i]) * silu_derivative_for<N>(x[i]);
      dropout.factors(key, width + c, f);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) d_o_group[i] += through_o[i] * f[i];
    }
    put_group(du, r * du_stride, c, width, g);
    put_group(d_o, r * width, c, width, d_o_group);
  }

 private:
  static __device__ float activated(float u) {
    return kConcat ? silu_for<N>(u) : u;
  }
};

template <GateForm form, typename T>
void forward(const GateForward<T>& p, CudaStream stream) {
  const Forward<form, Native<T>> body{{},
                                      p.width,
                                      p.u_stride,
                                      p.epsilon,
                                      native(p.u),
                                      native(p.o),
                                      p.weight,
                                      p.bias,
                                      DropoutRows(p.dropout),
                                      {native(p.y)},
                                      p.mean,
                                      p.rstd};
  for_each_norm_row(p.rows, p.width, body, stream);
}
template <GateForm form, typename T>
void backward(const GateBackward<T>& p, CudaStream stream) {
  const Backward<form, Native<T>> body{{},
                                       p.width,
                                       p.u_stride,
                                       p.du_stride,
                                       native(p.u),
                                       native(p.o),
                                       p.weight,
                                       p.bias,
                                       p.mean,
                                       p.rstd,
                                       DropoutRows(p.dropout),
                                       native(p.dy),
                                       target(p.du),
                                       target(p.d_o)};
  for_each_norm_row_with_sums(p.rows, p.width, body, target(p.dweight), target(p.dbias), stream);
}

}  // namespace

template <typename T>
void gate(const GateForward<T>& p, CudaStream stream) {
  p.form == GateForm::concat ? forward<GateForm::concat>(p, stream) : forward<GateForm::product>(p, stream);
  check_launch("gate");
}

template <typename T>
void gate_backward(const GateBackward<T>& p, CudaStream stream) {
  p.form == GateForm::concat ? backward<GateForm::concat>(p, stream) : backward<GateForm::product>(p, stream);
  check_launch("gate_backward");
}

template void gate(const GateForward<float>&, CudaStream);
template void gate(const GateForward<BFloat16>&, CudaStream);
template void gate_backward(const GateBackward<float>&, CudaStream);
template void gate_backward(const GateBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
