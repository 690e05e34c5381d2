// Columns of a variable as an operand, so that several operations read, and give gradients to, one result.
#pragma once

#include "hstu/ops/op.h"

namespace hstu::ops {

struct Columns {
  Columns(const Variable& all) : variable(all), range{0, all.cols()} {}  // NOLINT: all columns
  Columns(const Variable& of, std::int64_t first, std::int64_t width)
      : variable(of), range{first, first + width} {}

  std::int64_t rows() const { return variable.rows(); }
  std::int64_t width() const { return range.width(); }
  std::int64_t stride() const { return variable.cols(); }  // elements from one row to the next
  template <typename T>
  const T* data() const {
    return variable.value().data<T>() + range.begin;
  }

  Variable variable;
  ColumnRange range;
};

// As gradient_of(Variable); the rows are stride() apart.
template <typename T>
kernels::Gradient<T> gradient_of(const Columns& x, const Context& context) {
  if (!x.variable.needs_gradient()) return {};
  GradientSlot slot = x.variable.gradient_columns(x.range, context);
  return {slot.tensor.mutable_data<T>() + x.range.begin, slot.accumulate};
}

}  // namespace hstu::ops
