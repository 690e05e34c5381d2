#include <vector>

#include "hstu/base/threads.h"
#include "hstu/kernels/gate.h"
#include "hstu/kernels/layer_norm_row.h"
#include "hstu/kernels/math.h"
#include "hstu/kernels/reduce.h"

namespace hstu::kernels {

template <typename T>
void gate(const GateForward<T>& p, HostStream) {
  const std::int64_t n = p.width;
  parallel_blocks(p.rows, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> factors(static_cast<std::size_t>(3 * n));
    for (std::int64_t r = begin; r < end; ++r) {
      const T* const u = p.u + r * n;
      const T* const o = p.o + r * n;
      T* const cat = p.cat + 3 * r * n;
      const auto s = row_statistics(o, n, p.epsilon);
      p.mean[r] = s.mean;
      p.rstd[r] = s.rstd;
      dropout_factors(p.dropout, r, 3 * n, factors.data());
      const T* const f = factors.data();
#pragma omp simd
      for (std::int64_t c = 0; c < n; ++c) {
        const T activated = silu(u[c]);
        cat[c] = f[c] * activated;
        cat[n + c] = f[n + c] * o[c];
        cat[2 * n + c] = f[2 * n + c] * activated * ((o[c] - s.mean) * s.rstd * p.weight[c] + p.bias[c]);
      }
    }
  });
}

template <typename T>
void gate_backward(const GateBackward<T>& p, HostStream) {
  const std::int64_t n = p.width;
  std::vector<T> total(static_cast<std::size_t>(2 * n));
  sum_over_rows(p.rows, 2 * n, Gradient<T>{total.data()}, [&](std::int64_t begin, std::int64_t end, T* sums) {
    std::vector<T> scratch(static_cast<std::size_t>(7 * n));
    T* const f = scratch.data();
    T* const dn = scratch.data() + 3 * n;  // gradient of the normalised row
    for (std::int64_t r = begin; r < end; ++r) {
      const T* const u = p.u + r * n;
      const T* const o = p.o + r * n;
      const T* const dcat = p.dcat + 3 * r * n;
      T* const du = p.du.to != nullptr ? p.du.to + r * n : scratch.data() + 4 * n;
      T* const d_o = p.d_o.to != nullptr ? p.d_o.to + r * n : scratch.data() + 5 * n;
      const T mean = p.mean[r], rstd = p.rstd[r];
      dropout_factors(p.dropout, r, 3 * n, f);
#pragma omp simd
      for (std::int64_t c = 0; c < n; ++c) {
        const T s = sigmoid(u[c]);
        const T normalised = (o[c] - mean) * rstd * p.weight[c] + p.bias[c];
        const T dy = dcat[2 * n + c] * f[2 * n + c];
        const T d_activated = dcat[c] * f[c] + dy * normalised;
        const T result = d_activated * s * (T(1) + u[c] * (T(1) - s));
        du[c] = p.du.accumulate ? du[c] + result : result;
        dn[c] = dy * u[c] * s;
      }
      row_backward(o, {mean, rstd}, p.weight, dn, n, p.d_o.accumulate, d_o, scratch.data() + 6 * n, sums,
                   sums + n);
#pragma omp simd
      for (std::int64_t c = 0; c < n; ++c) d_o[c] += dcat[n + c] * f[n + c];
    }
  });
  put_gradient(total.data(), n, p.dweight);
  put_gradient(total.data() + n, n, p.dbias);
}

template void gate(const GateForward<float>&, HostStream);
template void gate(const GateForward<double>&, HostStream);
template void gate_backward(const GateBackward<float>&, HostStream);
template void gate_backward(const GateBackward<double>&, HostStream);

}  // namespace hstu::kernels
