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

  template <int kGroups>
  __device__ void operator()(std::int64_t r) const {
    Row<kGroups> o_row, u_row;
    load_row<kGroups>(o + r * width, width, o_row);
    load_row<kGroups>(u + r * u_stride, width, u_row);
    const RowStatistics s = row_statistics<kGroups>(o_row, width, epsilon);
    if (lane() == 0) mean[r] = s.mean, rstd[r] = s.rstd;
    const std::uint64_t key = dropout.row(r);
    const RowBits keep_u = kConcat ? kept_in_row<kGroups>(dropout, key, 0, width) : 0,
                  keep_o = kConcat ? kept_in_row<kGroups>(dropout, key, width, width) : 0,
                  keep_y = kept_in_row<kGroups>(dropout, key, kProduct * width, width);
    const std::int64_t first = kParts * r * width;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const std::int64_t c = column_of(g);
      if (c >= width) break;
      float w[kGroup], b[kGroup], x[kGroup];
      load_group(weight, c, width, w);
      load_group(bias, c, width, b);
      if constexpr (kConcat) {
#pragma unroll
        for (int i = 0; i < kGroup; ++i) {
          u_row[g][i] *= sigmoid_for<N>(u_row[g][i]);
          x[i] = dropout.factor(bit(keep_u, g, i)) * u_row[g][i];
        }
        put_group(y, first, c, width, x);
#pragma unroll
        for (int i = 0; i < kGroup; ++i) x[i] = dropout.factor(bit(keep_o, g, i)) * o_row[g][i];
        put_group(y, first + width, c, width, x);
      }
#pragma unroll
      for (int i = 0; i < kGroup; ++i)
        x[i] =
            dropout.factor(bit(keep_y, g, i)) * u_row[g][i] * ((o_row[g][i] - s.mean) * s.rstd * w[i] + b[i]);
      put_group(y, first + kProduct * width, c, width, x);
    }
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

  template <int kGroups>
  __device__ void operator()(std::int64_t r, Row<kGroups>& dweight, Row<kGroups>& dbias) const {
    const N* const dy_row = dy + kParts * r * width;
    const std::int64_t last = kProduct * width;  // the part of the product
    Row<kGroups> n, x, g;                        // the normalised o, u, what reaches the product
    load_row<kGroups>(o + r * width, width, n);
    load_row<kGroups>(u + r * u_stride, width, x);
    load_row<kGroups>(dy_row + last, width, g);
    const float m = mean[r], s = rstd[r];
    const std::uint64_t key = dropout.row(r);
    const RowBits keep_u = kConcat ? kept_in_row<kGroups>(dropout, key, 0, width) : 0,
                  keep_o = kConcat ? kept_in_row<kGroups>(dropout, key, width, width) : 0,
                  keep_y = kept_in_row<kGroups>(dropout, key, last, width);
    float sum_g = 0, sum_gn = 0;
#pragma unroll
    for (int k = 0; k < kGroups; ++k) {
      const std::int64_t c = column_of(k);
      if (c >= width) break;
      float w[kGroup];
      load_group(weight, c, width, w);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        g[k][i] *= dropout.factor(bit(keep_y, k, i));
        n[k][i] = (n[k][i] - m) * s;
        const float dn = g[k][i] * activated(x[k][i]);
        sum_g += dn * w[i];
        sum_gn += dn * w[i] * n[k][i];
        dweight[k][i] += dn * n[k][i];
        dbias[k][i] += dn;
      }
    }
    const float average_g = warp_sum(sum_g) / static_cast<float>(width),
                average_gn = warp_sum(sum_gn) / static_cast<float>(width);
#pragma unroll
    for (int k = 0; k < kGroups; ++k) {
      const std::int64_t c = column_of(k);
      if (c >= width) break;
      float w[kGroup], b[kGroup], part[kGroup], result[kGroup];
      load_group(weight, c, width, w);
      load_group(bias, c, width, b);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const float dn = g[k][i] * activated(x[k][i]);
        g[k][i] *= n[k][i] * w[i] + b[i];  // what reaches u through the product
        n[k][i] = s * (dn * w[i] - average_g - n[k][i] * average_gn);
      }
      if constexpr (kConcat) {
        load_group(dy_row, c, width, part);
#pragma unroll
        for (int i = 0; i < kGroup; ++i) {
          const float open = sigmoid_for<N>(x[k][i]);
          result[i] =
              (part[i] * dropout.factor(bit(keep_u, k, i)) + g[k][i]) * open * (1 + x[k][i] * (1 - open));
        }
        load_group(dy_row + width, c, width, part);
#pragma unroll
        for (int i = 0; i < kGroup; ++i) n[k][i] += part[i] * dropout.factor(bit(keep_o, k, i));
        put_group(du, r * du_stride, c, width, result);
      } else {
        put_group(du, r * du_stride, c, width, g[k]);
      }
      put_group(d_o, r * width, c, width, n[k]);
    }
  }

 private:
  static __device__ float activated(float u) {
    return kConcat ? u * sigmoid_for<N>(u) : u;
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
  for_each_norm_row<Native<T>>(p.rows, p.width, body, stream);
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
  for_each_norm_row_with_sums<Native<T>>(p.rows, p.width, body, target(p.dweight), target(p.dbias), stream);
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
