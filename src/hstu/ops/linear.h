// Products with weights. Weights are (in, out): y = x W + b.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "hstu/kernels/linear.h"
#include "hstu/tensor/tape.h"

namespace hstu::ops {

// What a product reads: a variable, or the result of linear_relu or linear_gelu.
class LinearInput {
 public:
  LinearInput(Variable x) : variable_(std::move(x)) {}  // NOLINT: any variable
  // For products alone if is_relu(): the gradient is that of what relu was taken of. With gelu(): what gelu
  // was taken of, which no other operation may read: a product's backward pass may overwrite it.
  const Variable& variable() const { return variable_; }
  bool is_relu() const { return is_relu_; }
  // gelu of variable(), or undefined. A product that has read it drops its value, and that of variable()
  // makes room for its gradient in the backward pass of the only product.
  const Variable& gelu() const { return gelu_; }
  const std::shared_ptr<int>& gelu_products() const { return gelu_products_; }  // that have read it

 private:
  friend LinearInput linear_relu(Tape&, const LinearInput&, const Variable&, const Variable&);
  friend LinearInput linear_gelu(Tape&, const LinearInput&, const Variable&, const Variable&);
  Variable variable_, gelu_;
  std::shared_ptr<int> gelu_products_;
  bool is_relu_ = false;
};

// y (M, N) = x (M, K) weight (K, N) + bias (N); the bias may be undefined.
Variable linear(Tape& tape, const LinearInput& x, const Variable& weight, const Variable& bias);

// relu(y), the input of other products alone: where it is 0, what they add to its gradient is 0, so that no
// pass over it is needed between them.
LinearInput linear_relu(Tape& tape, const LinearInput& x, const Variable& weight, const Variable& bias);

// gelu(y), the input of other products alone, best of one: what is kept is y, and the product's backward pass
// computes gelu and its slope from that.
LinearInput linear_gelu(Tape& tape, const LinearInput& x, const Variable& weight, const Variable& bias);

// y with only some of the weight's columns: (M, sum of widths), the ranges concatenated.
Variable linear_columns(Tape& tape, const LinearInput& x, const Variable& weight, const Variable& bias,
                        const std::vector<ColumnRange>& columns);

// The same, and SiLU of the result's columns from `silu_from` on: a constant, whose readers give their
// gradient to y (see Columns).
struct LinearSilu {
  Variable y, activated;  // (M, N), (M, N - silu_from)
};
LinearSilu linear_silu(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                       const std::vector<ColumnRange>& columns, std::int64_t silu_from);

// For products that have written SiLU of y's columns from `silu_from` on: LinearSilu::activated.
Variable with_silu(const Variable& y, const Tensor& activated, std::int64_t silu_from,
                   const Context& context);

// y (M, N) = residual (M, N) + x (M, K) weight (K, N) + bias (N); the bias may be undefined.
Variable linear_residual(Tape& tape, const LinearInput& x, const Variable& weight, const Variable& bias,
                         const Variable& residual);

// One product per group: y (G * M, N), y[g] = x[g] (M, K) weight[g] (K, N) + bias[g] (N), with x (G * M, K),
// weight (G, K, N), bias (G, N).
Variable grouped_linear(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias);

}  // namespace hstu::ops
