#include "hstu/model/parameters.h"

#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "hstu/base/random.h"

namespace hstu {

Initializer Initializer::xavier_uniform(std::int64_t in, std::int64_t out) {
  return uniform(std::sqrt(6.0 / static_cast<double>(in + out)));
}

Initializer Initializer::xavier_normal(std::int64_t in, std::int64_t out) {
  return normal(std::sqrt(2.0 / static_cast<double>(in + out)));
}

namespace {

// Values [begin, begin + n) of a parameter.
template <typename T>
void initialise(const Initializer& initializer, RandomStream random, std::int64_t begin, std::int64_t n,
                T* values) {
  random.index = static_cast<std::uint64_t>(begin);  // a value takes one number
  for (std::int64_t i = 0; i < n; ++i) {
    double x = initializer.value;
    if (initializer.kind == Initializer::Kind::uniform) x *= 2 * random.uniform() - 1;
    if (initializer.kind == Initializer::Kind::normal) x *= random.normal();
    values[i] = static_cast<T>(x);
  }
}

}  // namespace

const Parameter& ParameterSet::add(std::string name, Shape shape, const Initializer& initializer,
                                   AxisDivision division) {
  if (division.is_divided()) division.whole = shape;
  check_division(division, name);
  const RandomStream random{derive_key(seed_, name)};
  Tensor value = Tensor::empty(division.is_divided() ? shape_of_part(division) : shape, type_);
  with_float_type(type_, [&]<typename T>() {
    T* const values = value.mutable_data<T>();
    if (!division.is_divided()) return initialise(initializer, random, 0, value.size(), values);
    for_each_run(division, [&](std::int64_t in_part, std::int64_t in_whole, std::int64_t n) {
      initialise(initializer, random, in_whole, n, values + in_part);
    });
  });
  Tensor gradient = Tensor::zeros(value.shape(), type_);
  parameters_.push_back(std::make_unique<Parameter>(
      Parameter{std::move(name), std::move(value), std::move(gradient), std::move(division)}));
  return *parameters_.back();
}

const Parameter& ParameterSet::add_divisible(std::string name, Shape shape, const Initializer& initializer,
                                             const Divisible& divisible) {
  add(std::move(name), shape, initializer);
  parameters_.back()->divisible = divisible;
  return *parameters_.back();
}

const Tensor& ParameterSet::add_constant(Tensor value, const Divisible& divisible) {
  constants_.push_back(std::make_unique<Constant>(Constant{std::move(value), divisible}));
  return constants_.back()->value;
}

void ParameterSet::divide(int rank, int ranks) {
  const auto part_of = [&](const Tensor& whole, const AxisDivision& division) {
    Tensor part = Tensor::empty(shape_of_part(division), whole.dtype());
    with_float_type(whole.dtype(), [&]<typename T>() {
      copy_from_whole(division, whole.data<T>(), part.mutable_data<T>());
    });
    return part;
  };
  for (const auto& p : parameters_) {
    if (p->divisible.blocks == 0) continue;
    p->division = part_of_rank(p->divisible, p->value.shape(), rank, ranks);
    p->value = part_of(p->value, p->division);
    p->gradient = Tensor::zeros(p->value.shape(), type_);
  }
  for (const auto& c : constants_)
    if (c->divisible.blocks > 0)
      c->value = part_of(c->value, part_of_rank(c->divisible, c->value.shape(), rank, ranks));
}

NamedTensors ParameterSet::all() const {
  NamedTensors tensors;
  for (const auto& parameter : parameters_) tensors.push_back(parameter.get());
  return tensors;
}

std::int64_t ParameterSet::count() const {
  std::int64_t n = 0;
  for (const auto& parameter : parameters_) n += parameter->value.size();
  return n;
}

std::int64_t ParameterSet::whole_count() const {
  std::int64_t n = 0;
  for (const auto& parameter : parameters_) {
    const Shape& shape = parameter->whole_shape();
    n += std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  return n;
}

void ParameterSet::clear_gradients(const Stream& stream) const {
  if (gradients_.defined()) {
    Tensor all = gradients_;
    return all.fill_zero(stream);
  }
  for (const auto& parameter : parameters_) parameter->gradient.fill_zero(stream);
}

void ParameterSet::move_to(const Context& context) {
  constexpr std::int64_t kAlignment = 64;  // elements: 256 bytes in fp32
  const auto padded = [](std::int64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; };
  std::int64_t size = 0;
  for (const auto& parameter : parameters_) size += padded(parameter->value.size());
  gradients_ = Tensor::zeros({size}, type_, context);
  std::int64_t at = 0;
  for (const auto& parameter : parameters_) {
    const std::int64_t n = parameter->value.size();
    parameter->value = parameter->value.copy(context);
    parameter->gradient = gradients_.row_range(at, at + n).reshaped(parameter->value.shape());
    at += padded(n);
  }
  for (const auto& constant : constants_) constant->value = constant->value.copy(context);
}

const Parameter& ParameterSet::find(const std::string& name) const {
  for (const auto& parameter : parameters_) {
    if (parameter->name == name) return *parameter;
  }
  throw InternalError("no parameter is named " + name);
}

}  // namespace hstu
