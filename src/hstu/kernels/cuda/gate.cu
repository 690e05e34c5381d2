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

template <GateForm form, typename N, bool whole>
struct Forward : Form<form> {
  using Form<form>::kConcat, Form<form>::kParts, Form<form>::kProduct;
  static constexpr int kAhead = 2;
  static constexpr bool kWhole = whole;
  std::uint32_t u_stride;
  float epsilon;
  const N *u, *o;
  const float *weight, *bias;
  DropoutRows dropout;
  Target<N> y;
  float *mean, *rstd;

  struct Inputs {
    Packed<N> o, u;
    std::uint64_t key = 0;  // of the row's dropout
  };
  __device__ Inputs load(std::uint32_t r, const Team<kWhole>& team) const {
    const int c = team.column(), width = team.width();
    return {load_packed<kWhole>(o + row_at(r, width), c, width),
            load_packed<kWhole>(u + row_at(r, u_stride), c, width)};
  }

  __device__ void operator()(std::uint32_t r, Team<kWhole>& team, const Affine& affine,
                             const Inputs& inputs) const {
    const int c = team.column(), width = team.width();
    const std::int64_t first = row_at(r, kParts * width);
    float v[kGroup], x[kGroup], f[kGroup], result[kGroup];
    inputs.o.unpack(v);
    const RowStatistics s = row_statistics<N>(v, epsilon, team);
    if (c == 0) mean[r] = s.mean, rstd[r] = s.rstd;
    if (!kWhole && c >= width) return;
    inputs.u.unpack(x);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) x[i] = silu_for<N>(x[i]);
    if constexpr (kConcat) {
      dropout.factors(inputs.key, c, f);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) result[i] = f[i] * x[i];
      put_group<kWhole>(y, first, c, width, result);
      dropout.factors(inputs.key, width + c, f);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) result[i] = f[i] * v[i];
      put_group<kWhole>(y, first + width, c, width, result);
    }
    dropout.factors(inputs.key, kProduct * width + c, f);
#pragma unroll
    for (int i = 0; i < kGroup; ++i)
      result[i] = f[i] * x[i] * (normalised<N>(v[i], s) * affine.weight[i] + affine.bias[i]);
    put_group<kWhole>(y, first + kProduct * width, c, width, result);
  }
};

template <GateForm form, typename N, bool whole>
struct Backward : Form<form> {
  using Form<form>::kConcat, Form<form>::kParts, Form<form>::kProduct;
  static constexpr int kAhead = kConcat ? 1 : 2;
  static constexpr bool kWhole = whole;
  std::uint32_t u_stride, du_stride;
  const N *u, *o;
  const float *weight, *bias, *mean, *rstd;
  DropoutRows dropout;
  const N* dy;  // (rows, parts * width)
  Target<N> du, d_o;

  struct Inputs {
    Packed<N> o, u, through_product, through_u, through_o;  // the last three: the parts of dy
    RowStatistics statistics{0, 0};
    std::uint64_t key = 0;
  };
  __device__ Inputs load(std::uint32_t r, const Team<kWhole>& team) const {
    const int c = team.column(), width = team.width();
    const N* const row = dy + row_at(r, kParts * width);
    Inputs inputs{load_packed<kWhole>(o + row_at(r, width), c, width),
                  load_packed<kWhole>(u + row_at(r, u_stride), c, width),
                  load_packed<kWhole>(row + kProduct * width, c, width)};
    if constexpr (kConcat) {
      inputs.through_u = load_packed<kWhole>(row, c, width);
      inputs.through_o = load_packed<kWhole>(row + width, c, width);
    }
    inputs.statistics = {mean[r], rstd[r]};
    return inputs;
  }

  __device__ void operator()(std::uint32_t r, Team<kWhole>& team, const Affine& affine, const Inputs& inputs,
                             float (&dweight)[kGroup], float (&dbias)[kGroup]) const {
    const int c = team.column(), width = team.width();
    // n: the normalised o; g: what reaches the product; silu: u, then its SiLU; open: the sigmoid of u
    float n[kGroup], silu[kGroup], g[kGroup], open[kGroup], f[kGroup];
    inputs.o.unpack(n);
    inputs.u.unpack(silu);
    inputs.through_product.unpack(g);
    dropout.factors(inputs.key, kProduct * width + c, f);
    float2 sums{0, 0};
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      g[i] *= f[i];
      n[i] = normalised<N>(n[i], inputs.statistics);
      open[i] = sigmoid_for<N>(silu[i]);
      silu[i] *= open[i];
      const float dn = g[i] * silu[i];
      sums.x += dn * affine.weight[i];
      sums.y += dn * affine.weight[i] * n[i];
      dweight[i] += dn * n[i];
      dbias[i] += dn;
    }
    sums = team.sum(sums);
    if (!kWhole && c >= width) return;
    const float rstd = inputs.statistics.rstd, per_width = rstd * team.inverse_width();
    const float average_g = sums.x * per_width, average_gn = sums.y * per_width;
    float d_o_group[kGroup];
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const float dn = g[i] * silu[i];
      g[i] *= n[i] * affine.weight[i] + affine.bias[i];  // what reaches silu(u) through the product
      d_o_group[i] = fmaf(dn * affine.weight[i], rstd, fmaf(-n[i], average_gn, -average_g));
    }
    if constexpr (kConcat) {
      float part[kGroup];
      inputs.through_u.unpack(part);
      dropout.factors(inputs.key, c, f);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) g[i] += part[i] * f[i];
      inputs.through_o.unpack(part);
      dropout.factors(inputs.key, width + c, f);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) d_o_group[i] += part[i] * f[i];
    }
#pragma unroll
    for (int i = 0; i < kGroup; ++i) g[i] *= open[i] + silu[i] * (1 - open[i]);  // silu'(u)
    put_group<kWhole>(du, row_at(r, du_stride), c, width, g);
    put_group<kWhole>(d_o, row_at(r, width), c, width, d_o_group);
  }
};

template <GateForm form, bool whole, typename T>
void forward(const GateForward<T>& p, CudaStream stream) {
  const Forward<form, Native<T>, whole> body{
      {},     narrow(p.u_stride),     p.epsilon,     native(p.u), native(p.o), p.weight,
      p.bias, DropoutRows(p.dropout), {native(p.y)}, p.mean,      p.rstd};
  for_each_norm_row(p.rows, p.width, body, stream);
}
template <GateForm form, typename T>
void forward(const GateForward<T>& p, CudaStream stream) {
  if constexpr (sizeof(T) == 2) {
    if (fills_warps(p.width, p.weight, p.bias) && is_whole(p.u, p.u_stride, p.width) &&
        is_whole(p.o, p.width, p.width) && is_whole(p.y, p.width, p.width))
      return forward<form, true>(p, stream);
  }
  forward<form, false>(p, stream);
}

template <GateForm form, bool whole, typename T>
void backward(const GateBackward<T>& p, CudaStream stream) {
  const Backward<form, Native<T>, whole> body{{},
                                              narrow(p.u_stride),
                                              narrow(p.du_stride),
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
template <GateForm form, typename T>
void backward(const GateBackward<T>& p, CudaStream stream) {
  if constexpr (sizeof(T) == 2) {
    if (fills_warps(p.width, p.weight, p.bias) && is_whole(p.u, p.u_stride, p.width) &&
        is_whole(p.o, p.width, p.width) && is_whole(p.dy, p.width, p.width) &&
        is_whole(p.du.to, p.du_stride, p.width) && is_whole(p.d_o.to, p.width, p.width))
      return backward<form, true>(p, stream);
  }
  backward<form, false>(p, stream);
}

}  // namespace

template <typename T>
void gate(const GateForward<T>& p, CudaStream stream) {
  p.form == GateForm::concat ? forward<GateForm::concat>(p, stream) : forward<GateForm::product>(p, stream);
}

template <typename T>
void gate_backward(const GateBackward<T>& p, CudaStream stream) {
  p.form == GateForm::concat ? backward<GateForm::concat>(p, stream) : backward<GateForm::product>(p, stream);
}

template void gate(const GateForward<float>&, CudaStream);
template void gate(const GateForward<BFloat16>&, CudaStream);
template void gate_backward(const GateBackward<float>&, CudaStream);
template void gate_backward(const GateBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
