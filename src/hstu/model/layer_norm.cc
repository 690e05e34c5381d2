#include "hstu/model/layer_norm.h"

#include <algorithm>

#include "hstu/ops/norm.h"

namespace hstu {
namespace {

Tensor filled(std::int64_t width, DType type, double value) {
  Tensor tensor = Tensor::empty({width}, type);
  with_float_type(type,
                  [&]<typename T>() { std::fill_n(tensor.mutable_data<T>(), width, static_cast<T>(value)); });
  return tensor;
}

}  // namespace

LayerNorm::LayerNorm(ParameterSet& set, const std::string& name, std::int64_t width, double epsilon,
                     bool affine, const Divisible& divisible)
    : epsilon_(epsilon) {
  if (affine) {
    weight_ = &set.add_divisible(name + ".weight", {width}, Initializer::ones(), divisible);
    bias_ = &set.add_divisible(name + ".bias", {width}, Initializer::zeros(), divisible);
  } else {
    one_ = &set.add_constant(filled(width, set.type(), 1), divisible);
    zero_ = &set.add_constant(filled(width, set.type(), 0), divisible);
  }
}

Variable LayerNorm::weight() const {
  return weight_ != nullptr ? Variable(*weight_) : Variable::constant(*one_);
}

Variable LayerNorm::bias() const {
  return bias_ != nullptr ? Variable(*bias_) : Variable::constant(*zero_);
}

Variable LayerNorm::operator()(Tape& tape, const Variable& x) const {
  return ops::layer_norm(tape, x, weight(), bias(), epsilon_);
}

}  // namespace hstu
