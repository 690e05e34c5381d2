#include "hstu/kernels/cuda/dropout.cuh"
#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/gate.h"

namespace hstu::kernels {
namespace {

using namespace cuda;

// Columns are taken in groups of 8, for which one call draws the factors of each third of cat; a width that
// is no multiple of 8 has its factors drawn one by one, because its thirds begin within a group.
inline constexpr std::int64_t kGroup = 8;

struct Factors {
  float u[kGroup], o[kGroup], y[kGroup];
};
__device__ void factors_of(const DropoutRows& dropout, std::uint64_t key, std::int64_t width, std::int64_t c0,
                           Factors& f) {
  if (width % kGroup == 0) {
    dropout.factors(key, c0 / kGroup, f.u);
    dropout.factors(key, (width + c0) / kGroup, f.o);
    dropout.factors(key, (2 * width + c0) / kGroup, f.y);
    return;
  }
  for (int i = 0; i < kGroup; ++i) {
    f.u[i] = dropout.factor(key, c0 + i);
    f.o[i] = dropout.factor(key, width + c0 + i);
    f.y[i] = dropout.factor(key, 2 * width + c0 + i);
  }
}

template <typename N>
struct Rows {
  std::int64_t rows, width;
  const N *u, *o;
  const float *weight, *bias;
};

template <typename N>
__global__ void gate_rows(Rows<N> p, float epsilon, DropoutRows dropout, N* cat_rows, float* mean,
                          float* rstd) {
  const std::int64_t r = warp_row(), w = p.width;
  if (r >= p.rows) return;
  const N* const u = p.u + r * w;
  const N* const o = p.o + r * w;
  N* const cat = cat_rows + 3 * r * w;
  const RowStatistics s = row_statistics(o, w, epsilon);
  if (lane() == 0) mean[r] = s.mean, rstd[r] = s.rstd;
  const std::uint64_t key = dropout.row(r);
  for (std::int64_t c0 = kGroup * lane(); c0 < w; c0 += 32 * kGroup) {
    Factors f;
    factors_of(dropout, key, w, c0, f);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const std::int64_t c = c0 + i;
      if (c >= w) break;
      const float x = to_float(u[c]), activated = x * sigmoid(x), v = to_float(o[c]);
      cat[c] = from_float<N>(f.u[i] * activated);
      cat[w + c] = from_float<N>(f.o[i] * v);
      cat[2 * w + c] = from_float<N>(f.y[i] * activated * ((v - s.mean) * s.rstd * p.weight[c] + p.bias[c]));
    }
  }
}

template <typename N>
struct Gradients {
  Rows<N> rows;
  DropoutRows dropout;
  const float *mean, *rstd;
  const N* dcat;  // (rows, 3 * width)
};

// The gradient of the normalised row at (r, c), before its factor is known: dy * silu(u).
template <typename N>
__device__ float normalised_gradient(const Gradients<N>& p, std::int64_t r, std::int64_t c, float factor) {
  const std::int64_t w = p.rows.width;
  const float x = to_float(p.rows.u[r * w + c]);
  return to_float(p.dcat[3 * r * w + 2 * w + c]) * factor * x * sigmoid(x);
}

template <typename N>
__global__ void gate_rows_backward(Gradients<N> p, Target<N> du, Target<N> d_o) {
  const std::int64_t r = warp_row(), w = p.rows.width;
  if (r >= p.rows.rows) return;
  const N* const dcat = p.dcat + 3 * r * w;
  const float mean = p.mean[r], rstd = p.rstd[r];
  const std::uint64_t key = p.dropout.row(r);
  float sum_g = 0, sum_gn = 0;
  for (std::int64_t c0 = kGroup * lane(); c0 < w; c0 += 32 * kGroup) {
    Factors f;
    factors_of(p.dropout, key, w, c0, f);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const std::int64_t c = c0 + i;
      if (c >= w) break;
      const float g = normalised_gradient(p, r, c, f.y[i]) * p.rows.weight[c];
      sum_g += g;
      sum_gn += g * (to_float(p.rows.o[r * w + c]) - mean) * rstd;
    }
  }
  const float average_g = warp_sum(sum_g) / static_cast<float>(w),
              average_gn = warp_sum(sum_gn) / static_cast<float>(w);
  for (std::int64_t c0 = kGroup * lane(); c0 < w; c0 += 32 * kGroup) {
    Factors f;
    factors_of(p.dropout, key, w, c0, f);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const std::int64_t c = c0 + i;
      if (c >= w) break;
      const float x = to_float(p.rows.u[r * w + c]), s = sigmoid(x);
      const float n = (to_float(p.rows.o[r * w + c]) - mean) * rstd;
      const float dy = to_float(dcat[2 * w + c]) * f.y[i];
      const float d_activated = to_float(dcat[c]) * f.u[i] + dy * (n * p.rows.weight[c] + p.rows.bias[c]);
      if (du.to != nullptr) du.put(r * w + c, d_activated * s * (1 + x * (1 - s)));
      if (d_o.to != nullptr) {
        d_o.put(r * w + c, rstd * (dy * x * s * p.rows.weight[c] - average_g - n * average_gn) +
                               to_float(dcat[w + c]) * f.o[i]);
      }
    }
  }
}

template <typename N>
struct WeightTerm {
  Gradients<N> p;
  __device__ Pair operator()(std::int64_t r, std::int64_t c) const {
    const std::int64_t w = p.rows.width;
    const float dn = normalised_gradient(p, r, c, p.dropout.factor(p.dropout.row(r), 2 * w + c));
    return {dn * (to_float(p.rows.o[r * w + c]) - p.mean[r]) * p.rstd[r], dn};
  }
};

}  // namespace

template <typename T>
void gate(const GateForward<T>& p, CudaStream stream) {
  if (p.rows == 0) return;
  const Rows<Native<T>> rows{p.rows, p.width, native(p.u), native(p.o), p.weight, p.bias};
  gate_rows<<<blocks_for(p.rows, kWarps), kThreads, 0, stream.handle>>>(
      rows, p.epsilon, DropoutRows(p.dropout), native(p.cat), p.mean, p.rstd);
  check_launch("gate");
}

template <typename T>
void gate_backward(const GateBackward<T>& p, CudaStream stream) {
  const Gradients<Native<T>> in{{p.rows, p.width, native(p.u), native(p.o), p.weight, p.bias},
                                DropoutRows(p.dropout),
                                p.mean,
                                p.rstd,
                                native(p.dcat)};
  if (p.rows > 0 && (p.du.to != nullptr || p.d_o.to != nullptr)) {
    gate_rows_backward<<<blocks_for(p.rows, kWarps), kThreads, 0, stream.handle>>>(in, target(p.du),
                                                                                   target(p.d_o));
  }
  sum_columns(p.rows, p.width, target(p.dweight), target(p.dbias), WeightTerm<Native<T>>{in}, stream);
  check_launch("gate_backward");
}

template void gate(const GateForward<float>&, CudaStream);
template void gate(const GateForward<BFloat16>&, CudaStream);
template void gate_backward(const GateBackward<float>&, CudaStream);
template void gate_backward(const GateBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
