// The formulas of row optimizers, column by column: one text for hosts and GPUs. row_optimizer.h has their
// source.
#pragma once

#include <cmath>
#include <type_traits>

#include "hstu/base/error.h"
#include "hstu/base/host_device.h"
#include "hstu/rows/row_optimizer.h"

namespace hstu {

// What the rows of one update share.
struct RowUpdateNumbers {
  float rate, epsilon;
  float beta1, rest1, beta2, rest2;  // beta, 1 - beta
  float log1, log2;                  // log(beta)
  float kept;                        // of a value before its update: 1 - rate * weight decay
  double exact_rate, exact_epsilon, exact_beta1, exact_beta2;
  bool is_frozen;

  RowUpdateNumbers(const RowOptimizer& o, double learning_rate)
      : rate(static_cast<float>(learning_rate * o.rate)),
        epsilon(static_cast<float>(o.epsilon)),
        beta1(static_cast<float>(o.beta1)),
        rest1(static_cast<float>(1.0 - o.beta1)),
        beta2(static_cast<float>(o.beta2)),
        rest2(static_cast<float>(1.0 - o.beta2)),
        log1(static_cast<float>(std::log(o.beta1))),
        log2(static_cast<float>(std::log(o.beta2))),
        kept(static_cast<float>(1.0 - learning_rate * o.rate * o.weight_decay)),
        exact_rate(learning_rate * o.rate),
        exact_epsilon(o.epsilon),
        exact_beta1(o.beta1),
        exact_beta2(o.beta2),
        is_frozen(o.rate == 0) {}
};

// rowwise_adagrad: the rate of a row. `sum`: M with this update's mean of squares.
HSTU_HOST_DEVICE float rowwise_adagrad_rate(const RowUpdateNumbers& u, float sum) {
  return static_cast<float>(u.exact_rate / (std::sqrt(static_cast<double>(sum)) + u.exact_epsilon));
}

// sgd, and rowwise_adagrad with the rate of its row.
HSTU_HOST_DEVICE void descend(float rate, float gradient, float& value) {
  value -= rate * gradient;
}

HSTU_HOST_DEVICE void update_adagrad(const RowUpdateNumbers& u, float gradient, float& sum, float& value) {
  sum += gradient * gradient;
  value -= u.rate * gradient / (std::sqrt(sum) + u.epsilon);
}

// adam and adamw: what the bias corrections make of a row's t-th update.
struct AdamRates {
  float rate;  // lr / (1 - beta1^t)
  float root;  // 1 / sqrt(1 - beta2^t)
};
// A GPU avoids powers in double, which would take longer than the row's memory does: -expm1(t log(beta)) is
// 1 - beta^t without the cancellation of small t.
HSTU_HOST_DEVICE AdamRates adam_rates(const RowUpdateNumbers& u, float t) {
#ifdef __CUDA_ARCH__
  return {u.rate / -expm1f(t * u.log1), rsqrtf(-expm1f(t * u.log2))};
#else
  const double updates = t;
  return {static_cast<float>(u.exact_rate / (1.0 - std::pow(u.exact_beta1, updates))),
          static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(u.exact_beta2, updates)))};
#endif
}

// adamw, before update_adam().
HSTU_HOST_DEVICE void decay(const RowUpdateNumbers& u, float& value) {
  value *= u.kept;
}

HSTU_HOST_DEVICE void update_adam(const RowUpdateNumbers& u, const AdamRates& r, float gradient, float& m,
                                  float& v, float& value) {
  m = u.beta1 * m + u.rest1 * gradient;
  v = u.beta2 * v + u.rest2 * gradient * gradient;
  value -= r.rate * m / (std::sqrt(v) * r.root + u.epsilon);
}

// Calls visit(std::integral_constant of the kind). The only place that turns a kind into code: a new one does
// not compile without a line here.
template <typename Visit>
decltype(auto) for_kind(RowOptimizerKind kind, const Visit& visit) {
  using enum RowOptimizerKind;
  switch (kind) {
    case rowwise_adagrad:
      return visit(std::integral_constant<RowOptimizerKind, rowwise_adagrad>());
    case sgd:
      return visit(std::integral_constant<RowOptimizerKind, sgd>());
    case adam:
      return visit(std::integral_constant<RowOptimizerKind, adam>());
    case adamw:
      return visit(std::integral_constant<RowOptimizerKind, adamw>());
    case adagrad:
      return visit(std::integral_constant<RowOptimizerKind, adagrad>());
  }
  require(false, "row optimizer {} does not exist", static_cast<int>(kind));
  __builtin_unreachable();
}

}  // namespace hstu
