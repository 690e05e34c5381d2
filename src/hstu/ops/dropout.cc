#include "hstu/ops/dropout.h"

#include "hstu/kernels/gather_sum.h"
#include "hstu/ops/op.h"

namespace hstu::ops {

Variable dropout(Tape& tape, const Variable& x, const Dropout& dropout) {
  if (dropout.rate == 0) return x;
  const Context& context = tape.context();
  check_devices<Operation::dropout>(context, x, dropout.row_names);
  const std::int64_t m = x.rows(), n = x.cols();
  const DType type = x.value().dtype();
  Tensor y = Tensor::empty({m, n}, type, context);
  const auto apply = [=](const Tensor& from, Tensor& to) {
    dispatch<Operation::dropout>(context, type, [&]<typename T>(auto stream) {
      kernels::apply_dropout(kernels::ApplyDropout<T>{.rows = m,
                                                      .width = n,
                                                      .x = from.data<T>(),
                                                      .y = to.mutable_data<T>(),
                                                      .dropout = dropout.of_rows(m)},
                             stream);
    });
  };
  apply(x.value(), y);
  return tape.record(y, {x}, [=](Tensor& dy) {
    apply(dy, dy);
    dispatch<Operation::dropout>(context, type,
                                 [&]<typename T>(auto stream) { pass_on<T>(dy, x, context, stream); });
  });
}

}  // namespace hstu::ops
