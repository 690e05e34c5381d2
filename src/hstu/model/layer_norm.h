// A layer norm of a model, with or without a weight and a bias.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/model/parameters.h"

namespace hstu {

class LayerNorm {
 public:
  // affine: adds NAME.weight and NAME.bias (width) to the set. Otherwise they are constants, 1 and 0, which
  // no checkpoint has. `divisible`: both, by ParameterSet::divide().
  LayerNorm(ParameterSet& set, const std::string& name, std::int64_t width, double epsilon,
            bool affine = true, const Divisible& divisible = {});

  // For operations that normalise; see epsilon().
  Variable weight() const;
  Variable bias() const;
  double epsilon() const { return epsilon_; }
  // y (M, width) from x (M, width).
  Variable operator()(Tape& tape, const Variable& x) const;

 private:
  double epsilon_;
  const Parameter *weight_ = nullptr, *bias_ = nullptr;  // null: constants
  const Tensor *one_ = nullptr, *zero_ = nullptr;
};

}  // namespace hstu
