// The model's MLP: linear, swish layer norm, linear, layer norm.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/model/parameters.h"

namespace hstu {

constexpr double kNormEpsilon = 1e-5;

struct LinearParameters {
  const Parameter &weight, &bias;  // (in, out), (out)
};
struct NormParameters {
  const Parameter &weight, &bias;  // (width) each
};

// Add NAME.weight and NAME.bias to the set.
LinearParameters add_linear(ParameterSet& set, const std::string& name, std::int64_t in, std::int64_t out,
                            const Initializer& weight);
NormParameters add_norm(ParameterSet& set, const std::string& name, std::int64_t width);

// The initial values of the hidden and output weights of an MLP, given (in, out).
using WeightInitializer = Initializer (*)(std::int64_t in, std::int64_t out);

class Mlp {
 public:
  // Adds NAME.0, NAME.swish, NAME.1, NAME.norm to the set: in -> hidden -> out.
  Mlp(ParameterSet& set, const std::string& name, std::int64_t in, std::int64_t hidden, std::int64_t out,
      WeightInitializer initializer);
  // y (M, out) from x (M, in), plus `addend` (M, out), which may be undefined.
  Variable operator()(Tape& tape, const Variable& x, const Variable& addend = {}) const;

 private:
  LinearParameters first_;
  NormParameters swish_;
  LinearParameters second_;
  NormParameters norm_;
};

}  // namespace hstu
