// A trainable dense tensor of a model, under the name it has in checkpoints.
#pragma once

#include <string>
#include <vector>

#include "hstu/tensor/axis_division.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

struct Parameter {
  std::string name;  // "layers.0.uvqk.weight"
  Tensor value;      // f32 (f64 in gradient checks)
  Tensor gradient;   // same shape and type; the sum of what backward passes added since the last clear
  // What `value` is of the whole parameter, which checkpoints have.
  AxisDivision division = {};
  Divisible divisible = {};  // by ParameterSet::divide()

  const Shape& whole_shape() const { return division.is_divided() ? division.whole : value.shape(); }
};
using NamedTensors = std::vector<Parameter*>;  // in the model's order; the model owns the parameters

}  // namespace hstu
