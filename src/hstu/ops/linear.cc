#include "hstu/ops/linear.h"

#include <algorithm>

#include "hstu/base/threads.h"
#include "hstu/kernels/gemm.h"
#include "hstu/kernels/reduce.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

using kernels::gemm;
using kernels::Op;

template <typename T>
void fill_rows(T* y, std::int64_t rows, std::int64_t stride, const T* row, std::int64_t width) {
  parallel_blocks(rows, 1024, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) std::copy_n(row, width, y + r * stride);
  });
}

}  // namespace

Variable linear(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias) {
  return linear_columns(tape, x, weight, bias, {{0, weight.cols()}});
}

Variable linear_columns(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                        const std::vector<ColumnRange>& columns) {
  const std::int64_t m = x.rows(), k = x.cols(), stride = weight.cols();
  require(weight.rows() == k, "linear: expected a weight of {} rows, found {}", k,
          to_string(weight.value().shape()));
  std::int64_t n = 0;
  for (const ColumnRange& c : columns) n += c.end - c.begin;
  Tensor y = Tensor::empty({m, n}, x.value().dtype());
  dispatch(y.dtype(), [&]<typename T>() {
    std::int64_t at = 0;
    for (const ColumnRange& c : columns) {
      T* const out = y.mutable_data<T>() + at;
      if (bias.defined()) fill_rows(out, m, n, bias.value().data<T>() + c.begin, c.end - c.begin);
      gemm(Op::none, Op::none, m, c.end - c.begin, k, T(1), x.value().data<T>(), k,
           weight.value().data<T>() + c.begin, stride, T(bias.defined()), out, n);
      at += c.end - c.begin;
    }
  });
  return tape.record(y, {x, weight, bias}, [=](Tensor& dy) {
    dispatch(dy.dtype(), [&]<typename T>() {
      T* const dweight = added_gradient(weight).mutable_data<T>();
      T* const dbias = bias.defined() ? added_gradient(bias).mutable_data<T>() : nullptr;
      GradientSlot dx = x.needs_gradient() ? x.gradient_slot() : GradientSlot{};
      std::vector<T> sums(static_cast<std::size_t>(n));
      if (dbias != nullptr) kernels::column_sums(dy.data<T>(), m, n, T(0), sums.data());
      std::int64_t at = 0;
      for (const ColumnRange& c : columns) {
        const std::int64_t width = c.end - c.begin;
        const T* const dy_columns = dy.data<T>() + at;
        gemm(Op::transpose, Op::none, k, width, m, T(1), x.value().data<T>(), k, dy_columns, n, T(1),
             dweight + c.begin, stride);
        for (std::int64_t j = 0; dbias != nullptr && j < width; ++j) {
          dbias[c.begin + j] += sums[static_cast<std::size_t>(at + j)];
        }
        if (dx.tensor.defined()) {
          gemm(Op::none, Op::transpose, m, k, width, T(1), dy_columns, n, weight.value().data<T>() + c.begin,
               stride, at > 0 ? T(1) : dx.beta<T>(), dx.data<T>(), k);
        }
        at += width;
      }
    });
  });
}

Variable linear_residual(Tape& tape, const Variable& x, const Variable& weight, const Variable& residual) {
  const std::int64_t m = x.rows(), k = x.cols(), n = weight.cols();
  require(weight.rows() == k && residual.rows() == m && residual.cols() == n,
          "linear_residual: shapes {}, {}, {} do not fit", to_string(x.value().shape()),
          to_string(weight.value().shape()), to_string(residual.value().shape()));
  Tensor y = residual.value().copy();
  dispatch(y.dtype(), [&]<typename T>() {
    gemm(Op::none, Op::none, m, n, k, T(1), x.value().data<T>(), k, weight.value().data<T>(), n, T(1),
         y.mutable_data<T>(), n);
  });
  return tape.record(y, {x, weight, residual}, [=](Tensor& dy) {
    dispatch(dy.dtype(), [&]<typename T>() {
      GradientSlot dx = x.gradient_slot();
      gemm(Op::none, Op::transpose, m, k, n, T(1), dy.data<T>(), n, weight.value().data<T>(), n, dx.beta<T>(),
           dx.data<T>(), k);
      gemm(Op::transpose, Op::none, k, n, m, T(1), x.value().data<T>(), k, dy.data<T>(), n, T(1),
           added_gradient(weight).mutable_data<T>(), n);
      pass_gradient(dy.data<T>(), residual);
    });
  });
}

Variable grouped_linear(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias) {
  const std::int64_t groups = weight.rows(), k = x.cols();
  const std::int64_t m = groups > 0 ? x.rows() / groups : 0, n = bias.cols();
  require(x.rows() == groups * m && weight.cols() == k * n && bias.rows() == groups,
          "grouped_linear: shapes {}, {}, {} do not fit", to_string(x.value().shape()),
          to_string(weight.value().shape()), to_string(bias.value().shape()));
  Tensor y = Tensor::empty({groups * m, n}, x.value().dtype());
  dispatch(y.dtype(), [&]<typename T>() {
    for (std::int64_t c = 0; c < groups; ++c) {
      fill_rows(y.mutable_data<T>() + c * m * n, m, n, bias.value().data<T>() + c * n, n);
      gemm(Op::none, Op::none, m, n, k, T(1), x.value().data<T>() + c * m * k, k,
           weight.value().data<T>() + c * k * n, n, T(1), y.mutable_data<T>() + c * m * n, n);
    }
  });
  return tape.record(y, {x, weight, bias}, [=](Tensor& dy) {
    dispatch(dy.dtype(), [&]<typename T>() {
      GradientSlot dx = x.gradient_slot();
      T* const dweight = added_gradient(weight).mutable_data<T>();
      T* const dbias = added_gradient(bias).mutable_data<T>();
      for (std::int64_t c = 0; c < groups; ++c) {
        const T* const dy_c = dy.data<T>() + c * m * n;
        gemm(Op::transpose, Op::none, k, n, m, T(1), x.value().data<T>() + c * m * k, k, dy_c, n, T(1),
             dweight + c * k * n, n);
        gemm(Op::none, Op::transpose, m, k, n, T(1), dy_c, n, weight.value().data<T>() + c * k * n, n,
             dx.beta<T>(), dx.data<T>() + c * m * k, k);
        kernels::column_sums(dy_c, m, n, T(1), dbias + c * n);
      }
    });
  });
}

}  // namespace hstu::ops
