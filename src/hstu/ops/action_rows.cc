#include "hstu/ops/action_rows.h"

#include "hstu/kernels/action_rows.h"
#include "hstu/ops/op.h"

namespace hstu::ops {

Variable action_rows(Tape& tape, const Variable& table, const Variable& target, const Tensor& actions,
                     const Tensor& bits) {
  const std::int64_t n = actions.size(), count = bits.size(), width = table.cols();
  require(table.rows() == count && target.value().size() == count * width,
          "action_rows: shapes {} and {} do not fit {} bits", ShapeText{table.value().shape()},
          ShapeText{target.value().shape()}, count);
  const Context& context = tape.context();
  check_devices<Operation::action_rows>(context, table, target, actions, bits);
  const DType type = table.value().dtype();
  Tensor y = Tensor::empty({n + 1, count * width}, type, context);
  dispatch<Operation::action_rows>(context, type, [&]<typename T>(auto stream) {
    kernels::action_rows(kernels::ActionRowsForward<T>{.actions = n,
                                                       .bits = count,
                                                       .width = width,
                                                       .action = actions.data<std::uint8_t>(),
                                                       .bit = bits.data<std::uint8_t>(),
                                                       .table = table.value().data<T>(),
                                                       .target = target.value().data<T>(),
                                                       .y = y.mutable_data<T>()},
                         stream);
  });
  return tape.record(y, {table, target}, [=](const Tensor& dy) {
    dispatch<Operation::action_rows>(context, type, [&]<typename T>(auto stream) {
      kernels::action_rows_backward(
          kernels::ActionRowsBackward<T>{.actions = n,
                                         .bits = count,
                                         .width = width,
                                         .action = actions.data<std::uint8_t>(),
                                         .bit = bits.data<std::uint8_t>(),
                                         .dy = dy.data<T>(),
                                         .dtable = gradient_of<Accumulator<T>>(table, context),
                                         .dtarget = gradient_of<Accumulator<T>>(target, context)},
          stream);
    });
  });
}

}  // namespace hstu::ops
