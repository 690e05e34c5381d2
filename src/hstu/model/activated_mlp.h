// Linear layers with an activation between them and none after the last.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/model/mlp.h"
#include "hstu/ops/activation.h"

namespace hstu {

class ActivatedMlp {
 public:
  // Adds NAME.0, NAME.1, ... to the set, for widths {in, hidden, ..., out}. Weights are xavier-uniform,
  // biases zero.
  ActivatedMlp(ParameterSet& set, const std::string& name, const std::vector<std::int64_t>& widths,
               ops::Activation activation);
  // y (M, out) from x (M, in).
  Variable operator()(Tape& tape, const Variable& x) const;

 private:
  std::vector<LinearParameters> layers_;
  ops::Activation activation_;
};

}  // namespace hstu
