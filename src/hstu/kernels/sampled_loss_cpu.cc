#include <algorithm>
#include <cmath>

#include "hstu/base/threads.h"
#include "hstu/kernels/loops.h"
#include "hstu/kernels/reduce.h"
#include "hstu/kernels/row_weight.h"
#include "hstu/kernels/sampled_loss.h"
#include "hstu/kernels/scratch.h"

namespace hstu::kernels {
namespace {

// From here on softplus(x) is x and sigmoid(x) is 1, to the last bit of a double.
constexpr double kLargeLogit = 40;

double softplus(double x) {
  return x > kLargeLogit ? x : std::log1p(std::exp(x));
}

// The sum of softplus(z) by few logarithms: of products of some 1 + e^z. e (count) may be overwritten.
template <typename T>
double softplus_sum(const T* z, std::int64_t count, T* e) {
  constexpr std::int64_t kFactors = 8;  // each below e^41, so a product is far below the largest double
  std::copy_n(z, count, e);
  loops<T>().exponentials(e, count, T(0), T(1));
  double sum = 0;
  for (std::int64_t i = 0; i < count; i += kFactors) {
    double product = 1;
    for (std::int64_t k = i; k < std::min(i + kFactors, count); ++k) {
      const auto x = static_cast<double>(z[k]);
      if (x > kLargeLogit)
        sum += x;
      else
        product *= 1 + static_cast<double>(e[k]);
    }
    sum += std::log(product);
  }
  return sum;
}

// log(sum of e^z) of a row; e (count) becomes e^(z - largest).
template <typename T>
double log_sum_of(const T* z, std::int64_t count, T* e) {
  const T most = loops<T>().largest(z, count);
  std::copy_n(z, count, e);
  const T sum = loops<T>().exponentials(e, count, most, T(1));
  return static_cast<double>(most) + std::log(static_cast<double>(sum));
}

template <typename T>
double loss_of(const SampledLoss<T>& p, const T* z, T* scratch) {
  const auto positive = static_cast<double>(z[0]);
  if (p.form == SampledLossForm::softmax) return log_sum_of(z, p.columns, scratch) - positive;
  return (p.beta * softplus(-positive) + softplus_sum(z + 1, p.columns - 1, scratch)) /
         static_cast<double>(p.columns);
}

// g (columns): factor times the gradient of loss_of.
template <typename T>
void gradient_of(const SampledLoss<T>& p, double factor, const T* z, T* g) {
  if (p.form == SampledLossForm::softmax) {
    const double log_sum = log_sum_of(z, p.columns, g);
    std::copy_n(z, p.columns, g);
    loops<T>().exponentials(g, p.columns, static_cast<T>(log_sum), static_cast<T>(factor));
    g[0] -= static_cast<T>(factor);
    return;
  }
  const double each = factor / static_cast<double>(p.columns);
  std::copy_n(z, p.columns, g);
  loops<T>().exponentials(g, p.columns, T(0), T(1));
  for (std::int64_t c = 1; c < p.columns; ++c)
    g[c] = static_cast<T>(
        static_cast<double>(z[c]) > kLargeLogit ? each : each * static_cast<double>(g[c] / (1 + g[c])));
  const auto positive = static_cast<double>(z[0]);
  g[0] = static_cast<T>(-each * p.beta / (1 + std::exp(positive)));
}

}  // namespace

template <typename T>
void sampled_loss(const SampledLoss<T>& p, HostStream) {
  double total = 0;
  sum_over_rows(p.positions, 1, Gradient<double>{&total},
                [&](std::int64_t begin, std::int64_t end, double* sum) {
                  const Scratch<T> scratch(p.columns);
                  for (std::int64_t r = begin; r < end; ++r)
                    *sum += weight_of(p.weights, r) * loss_of(p, p.logits + r * p.columns, scratch.data());
                });
  *p.loss = static_cast<T>(p.factor * total);
}

template <typename T>
void sampled_loss_backward(const SampledLossBackward<T>& p, HostStream) {
  if (p.dlogits.to == nullptr) return;
  const SampledLoss<T>& f = p.forward;
  const double factor = static_cast<double>(*p.dloss) * f.factor;
  parallel_blocks(f.positions, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    const Scratch<T> g(f.columns);
    for (std::int64_t r = begin; r < end; ++r) {
      gradient_of(f, factor * weight_of(f.weights, r), f.logits + r * f.columns, g.data());
      put_gradient(g.data(), f.columns, p.dlogits + r * f.columns);
    }
  });
}

template void sampled_loss(const SampledLoss<float>&, HostStream);
template void sampled_loss(const SampledLoss<double>&, HostStream);
template void sampled_loss_backward(const SampledLossBackward<float>&, HostStream);
template void sampled_loss_backward(const SampledLossBackward<double>&, HostStream);

}  // namespace hstu::kernels
