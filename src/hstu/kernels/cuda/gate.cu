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

// Where this rank's columns are in whole rows, which dropout's columns count. part: rows are divided.
template <bool part>
struct Places {
  std::int64_t first, whole;

  explicit Places(const GateColumns& columns) : first(columns.first), whole(columns.whole) {}
  // Of column c of part `of` of y.
  __device__ std::int64_t operator()(std::int64_t of, int c, int width) const {
    return part ? of * whole + first + c : of * width + c;
  }
};

template <GateForm form, typename N, bool whole, bool part>
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
  Places<part> place;

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
    RowStatistics s{0, 0};
    if constexpr (part) {
      s = {mean[r], rstd[r]};
    } else {
      s = row_statistics<N>(v, epsilon, team);
      if (c == 0) mean[r] = s.mean, rstd[r] = s.rstd;
    }
    if (!kWhole && c >= width) return;
    inputs.u.unpack(x);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) x[i] = silu_for<N>(x[i]);
    if constexpr (kConcat) {
      dropout.factors(inputs.key, place(0, c, width), f);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) result[i] = f[i] * x[i];
      put_group<kWhole>(y, first, c, width, result);
      dropout.factors(inputs.key, place(1, c, width), f);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) result[i] = f[i] * v[i];
      put_group<kWhole>(y, first + width, c, width, result);
    }
    dropout.factors(inputs.key, place(kProduct, c, width), f);
#pragma unroll
    for (int i = 0; i < kGroup; ++i)
      result[i] = f[i] * x[i] * (normalised<N>(v[i], s) * affine.weight[i] + affine.bias[i]);
    put_group<kWhole>(y, first + kProduct * width, c, width, result);
  }
};

template <GateForm form, typename N, bool whole, bool part>
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
  Places<part> place;
  float* row_sums;  // of parts of rows: GateBackward::sums

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
    dropout.factors(inputs.key, place(kProduct, c, width), f);
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
    float inverse_width = team.inverse_width();
    if constexpr (part) {
      sums = {row_sums[2 * std::int64_t{r}], row_sums[2 * std::int64_t{r} + 1]};
      inverse_width = 1.0f / static_cast<float>(place.whole);
    } else {
      sums = team.sum(sums);
    }
    if (!kWhole && c >= width) return;
    const float rstd = inputs.statistics.rstd, per_width = rstd * inverse_width;
    const float average_g = sums.x * per_width, average_gn = sums.y * per_width;
    float d_o_group[kGroup];
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const float dn = g[i] * silu[i];
      g[i] *= n[i] * affine.weight[i] + affine.bias[i];  // what reaches silu(u) through the product
      d_o_group[i] = fmaf(dn * affine.weight[i], rstd, fmaf(-n[i], average_gn, -average_g));
    }
    if constexpr (kConcat) {
      float through[kGroup];
      inputs.through_u.unpack(through);
      dropout.factors(inputs.key, place(0, c, width), f);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) g[i] += through[i] * f[i];
      inputs.through_o.unpack(through);
      dropout.factors(inputs.key, place(1, c, width), f);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) d_o_group[i] += through[i] * f[i];
    }
#pragma unroll
    for (int i = 0; i < kGroup; ++i) g[i] *= open[i] + silu[i] * (1 - open[i]);  // silu'(u)
    put_group<kWhole>(du, row_at(r, du_stride), c, width, g);
    put_group<kWhole>(d_o, row_at(r, width), c, width, d_o_group);
  }
};

// gate_backward_sums().
template <GateForm form, typename N, bool whole>
struct BackwardSums {
  static constexpr int kAhead = 1;
  static constexpr bool kWhole = whole;
  Backward<form, N, whole, true> pass;
  const float* weight;
  DropoutRows dropout;

  __device__ auto load(std::uint32_t r, const Team<kWhole>& team) const { return pass.load(r, team); }
  __device__ void operator()(std::uint32_t r, Team<kWhole>& team, const Affine& affine,
                             const auto& inputs) const {
    const int c = team.column();
    float n[kGroup], u[kGroup], g[kGroup], f[kGroup];
    inputs.o.unpack(n);
    inputs.u.unpack(u);
    inputs.through_product.unpack(g);
    dropout.factors(inputs.key, pass.place(pass.kProduct, c, team.width()), f);
    float2 sums{0, 0};
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const float dn = g[i] * f[i] * silu_for<N>(u[i]) * affine.weight[i];
      sums.x += dn;
      sums.y += dn * normalised<N>(n[i], inputs.statistics);
    }
    sums = team.sum(sums);
    if (c == 0) pass.row_sums[2 * std::int64_t{r}] = sums.x, pass.row_sums[2 * std::int64_t{r} + 1] = sums.y;
  }
};

template <GateForm form, bool whole, bool part, typename T>
void forward(const GateForward<T>& p, CudaStream stream) {
  const Forward<form, Native<T>, whole, part> body{
      {},     narrow(p.u_stride),     p.epsilon,     native(p.u), native(p.o), p.weight,
      p.bias, DropoutRows(p.dropout), {native(p.y)}, p.mean,      p.rstd,      Places<part>(p.columns)};
  for_each_norm_row(p.rows, p.width, body, stream);
}
template <GateForm form, bool part, typename T>
void forward(const GateForward<T>& p, CudaStream stream) {
  if constexpr (sizeof(T) == 2) {
    if (fills_warps(p.width, p.weight, p.bias) && is_whole(p.u, p.u_stride, p.width) &&
        is_whole(p.o, p.width, p.width) && is_whole(p.y, p.width, p.width))
      return forward<form, true, part>(p, stream);
  }
  forward<form, false, part>(p, stream);
}
template <GateForm form, typename T>
void forward(const GateForward<T>& p, CudaStream stream) {
  p.columns.is_part() ? forward<form, true>(p, stream) : forward<form, false>(p, stream);
}

template <GateForm form, bool whole, bool part, typename T>
Backward<form, Native<T>, whole, part> backward_body(const GateBackward<T>& p) {
  return {{},
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
          target(p.d_o),
          Places<part>(p.columns),
          p.sums};
}
template <GateForm form, bool whole, bool part, typename T>
void backward(const GateBackward<T>& p, CudaStream stream) {
  for_each_norm_row_with_sums(p.rows, p.width, backward_body<form, whole, part>(p), target(p.dweight),
                              target(p.dbias), stream);
}
template <GateForm form, bool part, typename T>
void backward(const GateBackward<T>& p, CudaStream stream) {
  if constexpr (sizeof(T) == 2) {
    if (fills_warps(p.width, p.weight, p.bias) && is_whole(p.u, p.u_stride, p.width) &&
        is_whole(p.o, p.width, p.width) && is_whole(p.dy, p.width, p.width) &&
        is_whole(p.du.to, p.du_stride, p.width) && is_whole(p.d_o.to, p.width, p.width))
      return backward<form, true, part>(p, stream);
  }
  backward<form, false, part>(p, stream);
}
template <GateForm form, typename T>
void backward(const GateBackward<T>& p, CudaStream stream) {
  p.columns.is_part() ? backward<form, true>(p, stream) : backward<form, false>(p, stream);
}

template <GateForm form, bool whole, typename T>
void backward_sums(const GateBackward<T>& p, CudaStream stream) {
  const BackwardSums<form, Native<T>, whole> body{backward_body<form, whole, true>(p), p.weight,
                                                  DropoutRows(p.dropout)};
  for_each_norm_row(p.rows, p.width, body, stream);
}
template <GateForm form, typename T>
void backward_sums(const GateBackward<T>& p, CudaStream stream) {
  if constexpr (sizeof(T) == 2) {
    if (fills_warps(p.width, p.weight) && is_whole(p.u, p.u_stride, p.width) &&
        is_whole(p.o, p.width, p.width) && is_whole(p.dy, p.width, p.width))
      return backward_sums<form, true>(p, stream);
  }
  backward_sums<form, false>(p, stream);
}

// Of the columns of O that this rank has.
template <typename N>
struct Moments {
  static constexpr int kAhead = 2;
  static constexpr bool kWhole = false;
  const N* o;
  float* moments;

  __device__ Packed<N> load(std::uint32_t r, const Team<kWhole>& team) const {
    return load_packed(o + row_at(r, team.width()), team.column(), team.width());
  }
  __device__ void operator()(std::uint32_t r, Team<kWhole>& team, const Packed<N>& row) const {
    float x[kGroup], sum = 0, squares = 0;
    row.unpack(x);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) sum += x[i];
    const float mean = team.sum({sum, 0}).x * team.inverse_width();
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const float d = team.column() + i < team.width() ? x[i] - mean : 0.0f;
      squares += d * d;
    }
    squares = team.sum({squares, 0}).x;
    if (team.column() == 0) moments[2 * std::int64_t{r}] = mean, moments[2 * std::int64_t{r} + 1] = squares;
  }
};

__global__ void combine_each_row(CombineMoments<float> p) {
  const std::int64_t r = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  hstu::cuda::wait_for_previous_launch();
  if (r >= p.rows) return;
  float mean = 0, squares = 0;
  for (std::int64_t rank = 0; rank < p.ranks; ++rank) mean += p.moments[2 * (rank * p.rows + r)];
  mean /= static_cast<float>(p.ranks);
  for (std::int64_t rank = 0; rank < p.ranks; ++rank) {
    const float* const of_rank = p.moments + 2 * (rank * p.rows + r);
    const float d = of_rank[0] - mean;
    squares += of_rank[1] + static_cast<float>(p.width) * d * d;
  }
  p.mean[r] = mean;
  p.rstd[r] = rsqrtf(squares / static_cast<float>(p.ranks * p.width) + p.epsilon);
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

template <typename T>
void gate_moments(const GateMoments<T>& p, CudaStream stream) {
  for_each_norm_row(p.rows, p.width, Moments<Native<T>>{native(p.o), p.moments}, stream);
}

template <>
void combine_moments(const CombineMoments<float>& p, CudaStream stream) {
  if (p.rows > 0)
    hstu::cuda::launch("combine moments", combine_each_row, blocks_for(p.rows, kThreads), kThreads,
                       stream.handle, p);
}

template <typename T>
void gate_backward_sums(const GateBackward<T>& p, CudaStream stream) {
  p.form == GateForm::concat ? backward_sums<GateForm::concat>(p, stream)
                             : backward_sums<GateForm::product>(p, stream);
}

template void gate(const GateForward<float>&, CudaStream);
template void gate(const GateForward<BFloat16>&, CudaStream);
template void gate_backward(const GateBackward<float>&, CudaStream);
template void gate_backward(const GateBackward<BFloat16>&, CudaStream);
template void gate_moments(const GateMoments<float>&, CudaStream);
template void gate_moments(const GateMoments<BFloat16>&, CudaStream);
template void gate_backward_sums(const GateBackward<float>&, CudaStream);
template void gate_backward_sums(const GateBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
