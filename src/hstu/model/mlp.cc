#include "hstu/model/mlp.h"

#include "hstu/ops/convert.h"
#include "hstu/ops/linear.h"
#include "hstu/ops/norm.h"

namespace hstu {

LinearParameters add_linear(ParameterSet& set, const std::string& name, std::int64_t in, std::int64_t out,
                            const Initializer& weight) {
  const Parameter& w = set.add(name + ".weight", {in, out}, weight);
  return {w, set.add(name + ".bias", {out}, Initializer::zeros())};
}

NormParameters add_norm(ParameterSet& set, const std::string& name, std::int64_t width) {
  const Parameter& w = set.add(name + ".weight", {width}, Initializer::ones());
  return {w, set.add(name + ".bias", {width}, Initializer::zeros())};
}

Mlp::Mlp(ParameterSet& set, const std::string& name, std::int64_t in, std::int64_t hidden, std::int64_t out,
         WeightInitializer initializer)
    : first_(add_linear(set, name + ".0", in, hidden, initializer(in, hidden))),
      swish_(add_norm(set, name + ".swish", hidden)),
      second_(add_linear(set, name + ".1", hidden, out, initializer(hidden, out))),
      norm_(add_norm(set, name + ".norm", out)) {}

Variable Mlp::operator()(Tape& tape, const Variable& x) const {
  Variable h =
      ops::linear(tape, x, ops::weight(tape, first_.weight, x.value().dtype()), Variable(first_.bias));
  h = ops::swish_layer_norm(tape, h, Variable(swish_.weight), Variable(swish_.bias), kNormEpsilon);
  h = ops::linear(tape, h, ops::weight(tape, second_.weight, x.value().dtype()), Variable(second_.bias));
  return ops::layer_norm(tape, h, Variable(norm_.weight), Variable(norm_.bias), kNormEpsilon);
}

}  // namespace hstu
