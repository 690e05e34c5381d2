// RowOptimizer: the update of one embedding row. Gradients are summed over all occurrences of the row in the
// step ("exact"), so a step updates a row once. Rows without a gradient are neither updated nor decayed.
#pragma once

#include <cstdint>

#include "hstu/base/choice.h"

namespace hstu {

enum class RowOptimizerKind { rowwise_adagrad, sgd, adam, adamw, adagrad };
inline constexpr Choice<RowOptimizerKind> kRowOptimizers[] = {
    {"rowwise_adagrad", RowOptimizerKind::rowwise_adagrad},
    {"sgd", RowOptimizerKind::sgd},
    {"adam", RowOptimizerKind::adam},
    {"adamw", RowOptimizerKind::adamw},
    {"adagrad", RowOptimizerKind::adagrad},
};

struct RowOptimizer {
  RowOptimizerKind kind = RowOptimizerKind::rowwise_adagrad;
  double epsilon = 1e-8;
  double beta1 = 0.9;  // Adam and AdamW
  double beta2 = 0.999;
  double weight_decay = 0.01;  // AdamW
  double rate = 1;             // of this table: multiplies the learning rate; 0: rows and states stay
  bool operator==(const RowOptimizer&) const = default;

  // Floats of optimizer state of a row of `dim` values, initially zero:
  //   rowwise_adagrad  1            M, the sum of mean squared gradients
  //   adagrad          dim          M, the sums of squared gradients
  //   sgd              0
  //   adam, adamw      2 dim + 1    m (dim), v (dim), t (updates of this row; a float counts exactly to 2^24,
  //                                 where the bias corrections are already 1)
  std::int64_t state_width(std::int64_t dim) const {
    return state_shape().by_column * dim + state_shape().by_row;
  }
  // The state is so many floats for each column, all those of one kind together, and then so many for the
  // row.
  struct StateShape {
    std::int64_t by_column = 0, by_row = 0;
  };
  StateShape state_shape() const;

  // Updates `row` (dim) by its merged `gradient` (dim):
  //   rowwise_adagrad  M += mean(g^2); w -= lr / (sqrt(M) + eps) g
  //   adagrad          M += g^2; w -= lr / (sqrt(M) + eps) g
  //   sgd              w -= lr g
  //   adam             t += 1; m, v as usual; w -= lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps)
  //   adamw            w -= lr weight_decay w; then as adam
  // t counts the row's own updates (docs/decisions/0010-row-optimizers.md).
  void update(double learning_rate, std::int64_t dim, const float* gradient, float* row, float* state) const;
};

}  // namespace hstu
