#include "hstu/optimizer/clipping.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/comm/groups.h"
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

}  // namespace

GradientSquares::GradientSquares(NamedTensors parameters, const Context& context,
                                 const std::vector<Tensor>& also)
    : parameters_(std::move(parameters)),
      stream_(context.stream),
      groups_(context.groups),
      sums_(Tensor::empty({std::ssize(parameters_) + std::ssize(also)}, DType::f64, context)) {
  auto* const sums = sums_.mutable_data<double>();
  if (!context.device().is_host()) {
    std::vector<cuda::FloatList> lists;
    for (const Parameter* p : parameters_) lists.push_back({p->gradient.data<float>(), p->gradient.size()});
    for (const Tensor& values : also) lists.push_back({values.data<float>(), values.size()});
    cuda::sums_of_squares(lists, sums, context.cuda());
    return;
  }
  require(also.empty(), "on the host, sums of squares are of parameters alone");
  const std::vector<ParameterBlock> blocks = blocks_of(parameters_);
  std::vector<double> partial(blocks.size());
  parallel_blocks(static_cast<std::int64_t>(blocks.size()), 1, [&](std::int64_t b, std::int64_t) {
    const auto [p, begin, end] = blocks[static_cast<std::size_t>(b)];
    const Tensor& gradient = parameters_[p]->gradient;
    partial[static_cast<std::size_t>(b)] = gradient.dtype() == DType::f64
                                               ? sum_of_squares(gradient.data<double>() + begin, end - begin)
                                               : sum_of_squares(gradient.data<float>() + begin, end - begin);
  });
  std::fill_n(sums, sums_.size(), 0.0);
  for (std::size_t b = 0; b < blocks.size(); ++b) sums[blocks[b].parameter] += partial[b];
}

const std::vector<double>& GradientSquares::totals() const {
  if (!totals_.empty() || parameters_.empty()) return totals_;
  const Tensor sums = sums_.to_host(stream_);
  totals_.assign(sums.data<double>(), sums.data<double>() + parameters());
  std::vector<double> of_divided;
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (parameters_[p]->division.is_divided()) of_divided.push_back(totals_[p]);
  if (of_divided.empty()) return totals_;
  require(groups_ != nullptr, "parameters are divided among ranks without groups");
  groups_->tensor.host.all_reduce_sum(std::span(of_divided));
  auto total = of_divided.begin();
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (parameters_[p]->division.is_divided()) totals_[p] = *total++;
  return totals_;
}

double GradientSquares::norm() const {
  double total = 0.0;
  for (const double sum : totals()) total += sum;
  return std::sqrt(total);
}

// In double no sum of squares of finite floats overflows: only a bad element makes it infinite or NaN.
std::string GradientSquares::first_bad() const {
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    if (!std::isfinite(totals()[p])) return parameters_[p]->name;
  return "";
}

}  // namespace hstu
