#include "hstu/kernels/dense.h"
#include "hstu/kernels/linear.h"

namespace hstu::kernels {

template <typename T>
void dense(const Dense<T>& p, HostStream stream) {
  const ColumnRange all{0, p.out};
  linear(LinearForward<T>{.rows = p.rows,
                          .in = p.in,
                          .weight_columns = p.out,
                          .columns = {&all, 1},
                          .x = p.x,
                          .weight = p.weight,
                          .bias = p.bias,
                          .y = p.y},
         stream);
  const std::int64_t size = p.rows * p.out;
  if (p.activation) activate(Activate<T>{size, *p.activation, p.y, p.y}, stream);
  if (p.residual == nullptr) return;
  for (std::int64_t i = 0; i < size; ++i) p.y[i] += p.residual[i];
}

template void dense(const Dense<float>&, HostStream);
template void dense(const Dense<double>&, HostStream);

}  // namespace hstu::kernels
