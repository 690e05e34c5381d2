#include "hstu/model/mlp.h"

#include "hstu/ops/convert.h"
#include "hstu/ops/mlp.h"

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

Variable Mlp::operator()(Tape& tape, const Variable& x, const Variable& addend) const {
  const DType type = x.value().dtype();
  return ops::mlp(tape, x,
                  {ops::weight(tape, first_.weight, type), Variable(first_.bias), Variable(swish_.weight),
                   Variable(swish_.bias), ops::weight(tape, second_.weight, type), Variable(second_.bias),
                   Variable(norm_.weight), Variable(norm_.bias)},
                  kNormEpsilon, addend);
}

}  // namespace hstu
