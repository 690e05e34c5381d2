#include "hstu/ops/gate.h"

#include "hstu/kernels/gate.h"
#include "hstu/ops/op.h"

namespace hstu::ops {

Variable gate(Tape& tape, const Variable& u, const Variable& o, const Variable& weight, const Variable& bias,
              double epsilon, const kernels::Dropout& dropout) {
  const std::int64_t m = u.rows(), n = u.cols();
  require(o.rows() == m && o.cols() == n && weight.value().size() == n && bias.value().size() == n,
          "gate: shapes {}, {} do not fit", to_string(u.value().shape()), to_string(o.value().shape()));
  const DType type = u.value().dtype();
  Tensor cat = Tensor::empty({m, 3 * n}, type), mean = Tensor::empty({m}, type),
         rstd = Tensor::empty({m}, type);
  dispatch(type, [&]<typename T>() {
    kernels::gate(kernels::GateForward<T>{m, n, static_cast<T>(epsilon), u.value().data<T>(),
                                          o.value().data<T>(), weight.value().data<T>(),
                                          bias.value().data<T>(), cat.mutable_data<T>(),
                                          mean.mutable_data<T>(), rstd.mutable_data<T>(), dropout});
  });
  return tape.record(cat, {u, o, weight, bias}, [=](Tensor& dcat) {
    dispatch(type, [&]<typename T>() {
      GradientSlot du = u.gradient_slot(), d_o = o.gradient_slot();
      kernels::gate_backward(kernels::GateBackward<T>{
          m, n, u.value().data<T>(), o.value().data<T>(), weight.value().data<T>(), bias.value().data<T>(),
          mean.data<T>(), rstd.data<T>(), dcat.data<T>(), du.data<T>(), d_o.data<T>(), du.beta<T>(),
          d_o.beta<T>(), added_gradient(weight).mutable_data<T>(), added_gradient(bias).mutable_data<T>(),
          dropout});
    });
  });
}

}  // namespace hstu::ops
