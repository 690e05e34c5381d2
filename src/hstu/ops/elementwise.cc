#include "hstu/ops/elementwise.h"

#include "hstu/kernels/elementwise.h"
#include "hstu/ops/op.h"

namespace hstu::ops {

Variable add(Tape& tape, const Variable& a, const Variable& b) {
  require(a.value().shape() == b.value().shape(), "add: shapes {} and {} differ",
          ShapeText{a.value().shape()}, ShapeText{b.value().shape()});
  const Context& context = tape.context();
  check_devices<Operation::add>(context, a, b);
  const DType type = a.value().dtype();
  Tensor y = Tensor::empty(a.value().shape(), type, context);
  dispatch<Operation::add>(context, type, [&]<typename T>(auto stream) {
    kernels::add(
        kernels::Add<T>{
            .size = y.size(), .a = a.value().data<T>(), .b = b.value().data<T>(), .y = y.mutable_data<T>()},
        stream);
  });
  return tape.record(y, {a, b}, [=](const Tensor& dy) {
    dispatch<Operation::add>(context, type, [&]<typename T>(auto stream) {
      kernels::pass_gradient(
          kernels::PassGradient<T>{.size = dy.size(), .dy = dy.data<T>(), .dx = gradient_of<T>(a, context)},
          stream);
      pass_on<T>(dy, b, context, stream);
    });
  });
}

Variable multiply(Tape& tape, const Variable& a, const Variable& b) {
  require(a.value().shape() == b.value().shape(), "multiply: shapes {} and {} differ",
          ShapeText{a.value().shape()}, ShapeText{b.value().shape()});
  const Context& context = tape.context();
  check_devices<Operation::multiply>(context, a, b);
  const DType type = a.value().dtype();
  Tensor y = Tensor::empty(a.value().shape(), type, context);
  dispatch<Operation::multiply>(context, type, [&]<typename T>(auto stream) {
    kernels::multiply(
        kernels::Multiply<T>{
            .size = y.size(), .a = a.value().data<T>(), .b = b.value().data<T>(), .y = y.mutable_data<T>()},
        stream);
  });
  return tape.record(y, {a, b}, [=](const Tensor& dy) {
    dispatch<Operation::multiply>(context, type, [&]<typename T>(auto stream) {
      kernels::multiply_backward(kernels::MultiplyBackward<T>{.size = dy.size(),
                                                              .a = a.value().data<T>(),
                                                              .b = b.value().data<T>(),
                                                              .dy = dy.data<T>(),
                                                              .da = gradient_of<T>(a, context),
                                                              .db = gradient_of<T>(b, context)},
                                 stream);
    });
  });
}

Variable concat_columns(Tape& tape, const std::vector<Variable>& parts) {
  require(!parts.empty(), "concat_columns: expected at least one part");
  const Context& context = tape.context();
  const std::int64_t m = parts.front().rows();
  std::int64_t n = 0;
  for (const Variable& part : parts) {
    require(part.rows() == m, "concat_columns: expected {} rows, found {}", m, part.rows());
    check_devices<Operation::concat_columns>(context, part);
    n += part.cols();
  }
  const DType type = parts.front().value().dtype();
  Tensor y = Tensor::empty({m, n}, type, context);
  dispatch<Operation::concat_columns>(context, type, [&]<typename T>(auto stream) {
    kernels::ConcatColumns<T> p{.rows = m, .parts = {}, .y = y.mutable_data<T>()};
    for (const Variable& part : parts) p.parts.push_back({part.value().data<T>(), part.cols()});
    kernels::concat_columns(p, stream);
  });
  return tape.record(y, parts, [=](const Tensor& dy) {
    dispatch<Operation::concat_columns>(context, type, [&]<typename T>(auto stream) {
      kernels::ConcatColumnsBackward<T> p{.rows = m, .dy = dy.data<T>(), .parts = {}};
      for (const Variable& part : parts) p.parts.push_back({gradient_of<T>(part, context), part.cols()});
      kernels::concat_columns_backward(p, stream);
    });
  });
}

Variable concat_rows(Tape& tape, const std::vector<Variable>& parts) {
  require(!parts.empty(), "concat_rows: expected at least one part");
  const Context& context = tape.context();
  const std::int64_t n = parts.front().cols();
  std::int64_t m = 0;
  for (const Variable& part : parts) {
    require(part.cols() == n, "concat_rows: expected {} columns, found {}", n, part.cols());
    check_devices<Operation::concat_rows>(context, part);
    m += part.rows();
  }
  const DType type = parts.front().value().dtype();
  Tensor y = Tensor::empty({m, n}, type, context);
  // One row whose columns are all elements of the parts.
  dispatch<Operation::concat_rows>(context, type, [&]<typename T>(auto stream) {
    kernels::ConcatColumns<T> p{.rows = 1, .parts = {}, .y = y.mutable_data<T>()};
    for (const Variable& part : parts) p.parts.push_back({part.value().data<T>(), part.value().size()});
    kernels::concat_columns(p, stream);
  });
  return tape.record(y, parts, [=](const Tensor& dy) {
    dispatch<Operation::concat_rows>(context, type, [&]<typename T>(auto stream) {
      kernels::ConcatColumnsBackward<T> p{.rows = 1, .dy = dy.data<T>(), .parts = {}};
      for (const Variable& part : parts)
        p.parts.push_back({gradient_of<T>(part, context), part.value().size()});
      kernels::concat_columns_backward(p, stream);
    });
  });
}

}  // namespace hstu::ops
