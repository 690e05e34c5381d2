#include "hstu/model/hstu_layer.h"

#include "hstu/ops/activation.h"
#include "hstu/ops/convert.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/gate.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/norm.h"

namespace hstu {
namespace {

// The gate's parts side by side.
std::int64_t parts(LayerForm form) {
  return form == LayerForm::concatenated ? 3 : 1;
}

}  // namespace

HstuLayer::HstuLayer(ParameterSet& set, const std::string& prefix, const HstuLayerConfig& config)
    : config_(config),
      width_(config.heads * config.head_dim),
      input_norm_(add_norm(set, prefix + ".input_norm", config.dim)),
      uvqk_(add_linear(set, prefix + ".uvqk", config.dim, 4 * width_,
                       Initializer::xavier_uniform(config.dim, 4 * width_))),
      output_norm_(add_norm(set, prefix + ".output_norm", width_)),
      output_(set.add(prefix + ".output.weight", {parts(config.form) * width_, config.dim},
                      Initializer::xavier_uniform(parts(config.form) * width_, config.dim))) {}

Variable HstuLayer::operator()(Tape& tape, const Variable& x, const Tensor& queries,
                               const ops::AttentionShape& shape, const ops::Dropout& dropout) const {
  const DType type = x.value().dtype();
  const Variable weight = ops::weight(tape, uvqk_.weight, type);
  const Variable z = ops::layer_norm(tape, x, Variable(input_norm_.weight), Variable(input_norm_.bias),
                                     config_.epsilon);                             // (T, D)
  const Variable zq = queries.defined() ? ops::gather_rows(tape, z, queries) : z;  // (Tq, D)
  // The weight's columns are [U, V, Q, K].
  const std::int64_t w = width_;
  const Variable u = project(tape, zq, weight, {{0, w}});                      // (Tq, w)
  const Variable q = project(tape, zq, weight, {{2 * w, 3 * w}});              // (Tq, w)
  const Variable vk = project(tape, z, weight, {{w, 2 * w}, {3 * w, 4 * w}});  // (T, 2 w)
  const Variable o = ops::attention(tape, q, vk, shape);                       // (Tq, w)
  const Variable gated = gate(tape, u, o, dropout);                            // (Tq, 3 w) or (Tq, w)
  if (!config_.residual) return ops::linear(tape, gated, ops::weight(tape, output_, type), {});
  const Variable xq = queries.defined() ? ops::gather_rows(tape, x, queries) : x;  // (Tq, D)
  return ops::linear_residual(tape, gated, ops::weight(tape, output_, type), xq);
}

// Columns of z W + b: (n, sum of widths), activated unless the gate does that.
Variable HstuLayer::project(Tape& tape, const Variable& z, const Variable& weight,
                            const std::vector<ops::ColumnRange>& columns) const {
  const Variable y = ops::linear_columns(tape, z, weight, Variable(uvqk_.bias), columns);
  return config_.form == LayerForm::concatenated ? y : ops::activate(tape, y, ops::Activation::silu);
}

Variable HstuLayer::gate(Tape& tape, const Variable& u, const Variable& o,
                         const ops::Dropout& dropout) const {
  const Variable weight(output_norm_.weight), bias(output_norm_.bias);
  if (config_.form == LayerForm::concatenated)
    return ops::gate(tape, u, o, weight, bias, config_.epsilon, dropout);
  const Variable normalised = ops::layer_norm(tape, o, weight, bias, config_.epsilon);
  return ops::dropout(tape, ops::multiply(tape, normalised, u), dropout);
}

}  // namespace hstu
