#include "hstu/optimizer/clipping.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hstu/base/threads.h"

namespace hstu {
namespace {

constexpr std::int64_t kGrain = 32768;  // elements a block: a constant, because it fixes the order of the sum

template <typename T>
double sum_of_squares(const T* values, std::int64_t n) {
  std::vector<double> partial(static_cast<std::size_t>((n + kGrain - 1) / kGrain), 0.0);
  parallel_blocks(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = begin; i < end; ++i)
      sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    partial[static_cast<std::size_t>(begin / kGrain)] = sum;
  });
  double total = 0.0;
  for (const double sum : partial) total += sum;
  return total;
}

double sum_of_squares(const Tensor& tensor) {
  return tensor.dtype() == DType::f64 ? sum_of_squares(tensor.data<double>(), tensor.size())
                                      : sum_of_squares(tensor.data<float>(), tensor.size());
}

}  // namespace

double gradient_norm(const NamedTensors& parameters) {
  double total = 0.0;
  for (const Parameter* parameter : parameters) total += sum_of_squares(parameter->gradient);
  return std::sqrt(total);
}

double clip_scale(double norm, double max_norm) {
  if (std::isnan(norm)) return norm;
  return max_norm > 0.0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

std::string first_bad_gradient(const NamedTensors& parameters) {
  // In double no sum of squares of finite floats overflows, so only a bad element can spoil it.
  for (const Parameter* parameter : parameters)
    if (!std::isfinite(sum_of_squares(parameter->gradient))) return parameter->name;
  return "";
}

}  // namespace hstu
