// Columns of a variable as an operand, so that several operations read, and give gradients to, one result.
#pragma once

#include <cstdint>

#include "hstu/kernels/gradient.h"
#include "hstu/tensor/tape.h"

namespace hstu::ops {

struct Columns {
  Columns(const Variable& all) : variable(all), range{0, all.cols()} {}  // NOLINT: all columns
  Columns(const Variable& of, std::int64_t first, std::int64_t width)
      : variable(of), range{first, first + width} {}
  // SiLU of the columns, which is `silu` from column `silu_first` on. The gradient is that of the columns.
  Columns(const Variable& of, std::int64_t first, std::int64_t width, const Variable& silu,
          std::int64_t silu_first)
      : variable(of), range{first, first + width}, activated(silu), activated_first(silu_first) {}

  std::int64_t rows() const { return variable.rows(); }
  std::int64_t width() const { return range.width(); }
  // The operand, and the elements from one row of it to the next.
  std::int64_t stride() const { return activated.defined() ? activated.cols() : variable.cols(); }
  template <typename T>
  const T* data() const {
    return activated.defined() ? activated.value().data<T>() + activated_first : before<T>();
  }
  // Before SiLU; in rows as the gradient's.
  template <typename T>
  const T* before() const {
    return variable.value().data<T>() + range.begin;
  }

  Variable variable;
  ColumnRange range;
  Variable activated;
  std::int64_t activated_first = 0;
};

// As gradient_of(Variable); the rows are variable.cols() apart.
template <typename T>
kernels::Gradient<T> gradient_of(const Columns& x, const Context& context) {
  if (!x.variable.needs_gradient()) return {};
  GradientSlot slot = x.variable.gradient_columns(x.range, context);
  return {slot.tensor.mutable_data<T>() + x.range.begin, slot.accumulate};
}

}  // namespace hstu::ops
