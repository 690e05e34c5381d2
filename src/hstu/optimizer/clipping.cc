#include "hstu/optimizer/clipping.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hstu/base/threads.h"
#include "hstu/optimizer/dense_update.h"
#include "hstu/optimizer/parameter_blocks.h"

namespace hstu {
namespace {

template <typename T>
double sum_of_squares(const T* values, std::int64_t n) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

// The sum of squares of each parameter's gradient.
std::vector<double> sums_of_squares(const NamedTensors& parameters, const Context& context) {
  std::vector<double> sums(parameters.size(), 0.0);
  if (!context.device().is_host()) {
    std::vector<cuda::FloatList> lists;
    for (const Parameter* p : parameters) lists.push_back({p->gradient.data<float>(), p->gradient.size()});
    cuda::sums_of_squares(lists, sums, context.cuda());
    return sums;
  }
  const std::vector<ParameterBlock> blocks = blocks_of(parameters);
  std::vector<double> partial(blocks.size());
  parallel_blocks(static_cast<std::int64_t>(blocks.size()), 1, [&](std::int64_t b, std::int64_t) {
    const auto [p, begin, end] = blocks[static_cast<std::size_t>(b)];
    const Tensor& gradient = parameters[p]->gradient;
    partial[static_cast<std::size_t>(b)] = gradient.dtype() == DType::f64
                                               ? sum_of_squares(gradient.data<double>() + begin, end - begin)
                                               : sum_of_squares(gradient.data<float>() + begin, end - begin);
  });
  for (std::size_t b = 0; b < blocks.size(); ++b) sums[blocks[b].parameter] += partial[b];
  return sums;
}

}  // namespace

double gradient_norm(const NamedTensors& parameters, const Context& context) {
  double total = 0.0;
  for (const double sum : sums_of_squares(parameters, context)) total += sum;
  return std::sqrt(total);
}

double clip_scale(double norm, double max_norm) {
  if (std::isnan(norm)) return norm;
  return max_norm > 0.0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

std::string first_bad_gradient(const NamedTensors& parameters, const Context& context) {
  // In double no sum of squares of finite floats overflows: only a bad element makes it infinite or NaN.
  const std::vector<double> sums = sums_of_squares(parameters, context);
  for (std::size_t p = 0; p < sums.size(); ++p)
    if (!std::isfinite(sums[p])) return parameters[p]->name;
  return "";
}

}  // namespace hstu
