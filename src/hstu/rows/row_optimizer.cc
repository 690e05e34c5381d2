#include "hstu/rows/row_optimizer.h"

#include <cmath>
#include <vector>

#include "hstu/base/error.h"

namespace hstu {
namespace {

void update_adagrad(const RowOptimizer& optimizer, double lr, std::int64_t dim, const float* gradient,
                    float* row, float* state) {
  float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < dim; ++i) squares += gradient[i] * gradient[i];
  state[0] += squares / static_cast<float>(dim);
  const auto rate = static_cast<float>(lr / (std::sqrt(static_cast<double>(state[0])) + optimizer.epsilon));
  for (std::int64_t i = 0; i < dim; ++i) row[i] -= rate * gradient[i];
}

void update_elementwise_adagrad(const RowOptimizer& optimizer, double lr, std::int64_t dim,
                                const float* gradient, float* row, float* state) {
  const auto rate = static_cast<float>(lr), epsilon = static_cast<float>(optimizer.epsilon);
  for (std::int64_t i = 0; i < dim; ++i) {
    state[i] += gradient[i] * gradient[i];
    row[i] -= rate * gradient[i] / (std::sqrt(state[i]) + epsilon);
  }
}

void update_sgd(double lr, std::int64_t dim, const float* gradient, float* row) {
  const auto rate = static_cast<float>(lr);
  for (std::int64_t i = 0; i < dim; ++i) row[i] -= rate * gradient[i];
}

void update_adam(const RowOptimizer& optimizer, double lr, std::int64_t dim, const float* gradient,
                 float* row, float* state) {
  float* m = state;
  float* v = state + dim;
  float& updates = state[2 * dim];
  updates += 1.0f;
  const auto beta1 = static_cast<float>(optimizer.beta1), beta2 = static_cast<float>(optimizer.beta2);
  const auto rest1 = static_cast<float>(1.0 - optimizer.beta1),
             rest2 = static_cast<float>(1.0 - optimizer.beta2);
  const double t = updates;
  const auto rate = static_cast<float>(lr / (1.0 - std::pow(optimizer.beta1, t)));
  const auto root = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(optimizer.beta2, t)));
  const auto epsilon = static_cast<float>(optimizer.epsilon);
  if (optimizer.kind == RowOptimizerKind::adamw) {
    const auto kept = static_cast<float>(1.0 - lr * optimizer.weight_decay);
    for (std::int64_t i = 0; i < dim; ++i) row[i] *= kept;
  }
  for (std::int64_t i = 0; i < dim; ++i) {
    m[i] = beta1 * m[i] + rest1 * gradient[i];
    v[i] = beta2 * v[i] + rest2 * gradient[i] * gradient[i];
    row[i] -= rate * m[i] / (std::sqrt(v[i]) * root + epsilon);
  }
}

}  // namespace

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
  return {};
}

void RowOptimizer::update(double learning_rate, std::int64_t dim, const float* gradient, float* row,
                          float* state) const {
  switch (kind) {
    case RowOptimizerKind::rowwise_adagrad:
      return update_adagrad(*this, learning_rate, dim, gradient, row, state);
    case RowOptimizerKind::sgd:
      return update_sgd(learning_rate, dim, gradient, row);
    case RowOptimizerKind::adagrad:
      return update_elementwise_adagrad(*this, learning_rate, dim, gradient, row, state);
    case RowOptimizerKind::adam:
    case RowOptimizerKind::adamw:
      return update_adam(*this, learning_rate, dim, gradient, row, state);
  }
}

}  // namespace hstu
