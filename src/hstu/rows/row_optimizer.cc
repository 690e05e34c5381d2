#include "hstu/rows/row_optimizer.h"

#include "hstu/rows/row_update.h"

namespace hstu {

RowOptimizer::StateShape RowOptimizer::state_shape() const {
  switch (kind) {
    case RowOptimizerKind::rowwise_adagrad:
      return {.by_row = 1};
    case RowOptimizerKind::sgd:
      return {};
    case RowOptimizerKind::adagrad:
      return {.by_column = 1};
    case RowOptimizerKind::adam:
    case RowOptimizerKind::adamw:
      return {.by_column = 2, .by_row = 1};
  }
  require(false, "row optimizer {} does not exist", static_cast<int>(kind));
  return {};
}

// Decay has a loop of its own: in one with the rest, the compiler would fuse its rounding with that of the
// update.
void RowOptimizer::update(double learning_rate, std::int64_t dim, const float* gradient, float* row,
                          float* state) const {
  using enum RowOptimizerKind;
  const RowUpdateNumbers u(*this, learning_rate);
  if (u.is_frozen) return;
  for_kind(kind, [&]<RowOptimizerKind kKind>(std::integral_constant<RowOptimizerKind, kKind>) {
    if constexpr (kKind == rowwise_adagrad) {
      float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
      for (std::int64_t i = 0; i < dim; ++i) squares += gradient[i] * gradient[i];
      state[0] += squares / static_cast<float>(dim);
      const float of_row = rowwise_adagrad_rate(u, state[0]);
      for (std::int64_t i = 0; i < dim; ++i) descend(of_row, gradient[i], row[i]);
    } else if constexpr (kKind == sgd) {
      for (std::int64_t i = 0; i < dim; ++i) descend(u.rate, gradient[i], row[i]);
    } else if constexpr (kKind == adagrad) {
      for (std::int64_t i = 0; i < dim; ++i) update_adagrad(u, gradient[i], state[i], row[i]);
    } else {
      static_assert(kKind == adam || kKind == adamw);
      float *const m = state, *const v = state + dim, *const t = v + dim;
      *t += 1.0f;
      const AdamRates rates = adam_rates(u, *t);
      if constexpr (kKind == adamw)
        for (std::int64_t i = 0; i < dim; ++i) decay(u, row[i]);
      for (std::int64_t i = 0; i < dim; ++i) update_adam(u, rates, gradient[i], m[i], v[i], row[i]);
    }
  });
}

}  // namespace hstu
