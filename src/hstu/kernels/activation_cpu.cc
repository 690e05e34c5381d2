#include <algorithm>
#include <cmath>
#include <numbers>

#include "hstu/base/threads.h"
#include "hstu/kernels/activation.h"
#include "hstu/kernels/loops.h"
#include "hstu/kernels/math.h"
#include "hstu/kernels/reduce.h"

namespace hstu::kernels {
namespace {

template <typename T>
T normal_distribution(T x) {
  return T(0.5) * (T(1) + std::erf(x / std::numbers::sqrt2_v<T>));
}
template <typename T>
T normal_density(T x) {
  return std::exp(-x * x / T(2)) * std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
}

// Calls body with the function and its derivative, so that a loop has no branch on the activation.
template <typename T, typename Body>
void with_activation(Activation activation, const Body& body) {
  switch (activation) {
    case Activation::relu:
      return body([](T x) { return x > 0 ? x : x * T(0); },  // NaN in, NaN out
                  [](T x) { return x > 0 ? T(1) : T(0); });
    case Activation::gelu:
      return body([](T x) { return x * normal_distribution(x); },
                  [](T x) { return normal_distribution(x) + x * normal_density(x); });
    case Activation::silu:
      return body([](T x) { return silu(x); },
                  [](T x) {
                    const T s = sigmoid(x);
                    return s * (T(1) + x * (T(1) - s));
                  });
  }
}

constexpr std::int64_t kElements = std::int64_t{1} << 14;  // of one task

}  // namespace

template <typename T>
void activate(const Activate<T>& p, HostStream) {
  with_activation<T>(p.activation, [&](const auto& function, const auto&) {
    parallel_blocks(p.size, kElements, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) p.y[i] = function(p.x[i]);
    });
  });
}

template <typename T>
void activate_backward(const ActivateBackward<T>& p, HostStream) {
  if (p.dx.to == nullptr) return;
  T* const dx = p.dx.to;
  with_activation<T>(p.activation, [&](const auto&, const auto& derivative) {
    parallel_blocks(p.size, kElements, [&](std::int64_t begin, std::int64_t end) {
      if (p.dx.accumulate) {
        for (std::int64_t i = begin; i < end; ++i) dx[i] += p.dy[i] * derivative(p.x[i]);
      } else {
        for (std::int64_t i = begin; i < end; ++i) dx[i] = p.dy[i] * derivative(p.x[i]);
      }
    });
  });
}

template <typename T>
void silu_columns(const SiluColumns<T>& p, HostStream) {
  parallel_blocks(p.rows, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t width = p.columns - p.from;
      loops<T>().silu(p.x + r * p.columns + p.from, p.y + r * width, width);
    }
  });
}

template <typename T>
void silu_slope(const SiluSlope<T>& p, HostStream) {
  parallel_blocks(p.rows, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      loops<T>().silu_backward(p.x + r * p.stride, p.dx + r * p.stride, p.width);
  });
}

template void silu_columns(const SiluColumns<float>&, HostStream);
template void silu_columns(const SiluColumns<double>&, HostStream);
template void silu_slope(const SiluSlope<float>&, HostStream);
template void silu_slope(const SiluSlope<double>&, HostStream);
template void activate(const Activate<float>&, HostStream);
template void activate(const Activate<double>&, HostStream);
template void activate_backward(const ActivateBackward<float>&, HostStream);
template void activate_backward(const ActivateBackward<double>&, HostStream);

}  // namespace hstu::kernels
