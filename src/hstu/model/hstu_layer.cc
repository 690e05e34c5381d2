#include "hstu/model/hstu_layer.h"

#include "hstu/model/stages.h"
#include "hstu/ops/convert.h"
#include "hstu/ops/gate.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/norm.h"

namespace hstu {
HstuLayer::HstuLayer(ParameterSet& set, const std::string& prefix, const HstuLayerConfig& config)
    : config_(config),
      width_(config.heads * config.head_dim),
      input_norm_(add_norm(set, prefix + ".input_norm", config.dim)),
      uvqk_(add_linear(set, prefix + ".uvqk", config.dim, 4 * width_,
                       Initializer::xavier_uniform(config.dim, 4 * width_))),
      output_norm_(add_norm(set, prefix + ".output_norm", width_)),
      output_(set.add(prefix + ".output.weight", {kernels::gate_parts(config.gate) * width_, config.dim},
                      Initializer::xavier_uniform(kernels::gate_parts(config.gate) * width_, config.dim))) {}

Variable HstuLayer::operator()(Tape& tape, const Variable& x, const Tensor& queries,
                               const ops::AttentionShape& shape, const ops::Dropout& dropout) const {
  if (!config_.recompute.layer) return compute(tape, x, queries, shape, dropout);
  return tape.recompute([=, this, &tape] { return compute(tape, x, queries, shape, dropout); });
}

Variable HstuLayer::compute(Tape& tape, const Variable& x, const Tensor& queries,
                            const ops::AttentionShape& shape, const ops::Dropout& dropout) const {
  const DType type = x.value().dtype();
  StageRange stage(tape, kNormUvqkStage);
  const Variable weight = ops::weight(tape, uvqk_.weight, type);
  const Variable z = ops::layer_norm(tape, x, Variable(input_norm_.weight), Variable(input_norm_.bias),
                                     config_.epsilon);                             // (T, D)
  const Variable zq = queries.defined() ? ops::gather_rows(tape, z, queries) : z;  // (Tq, D)
  // The weight's columns are [U, V, Q, K]. Where every token is a query, one product has them all.
  const std::int64_t w = width_;
  Projected uq, vk;
  std::int64_t v_at = 0, q_at = w, k_at = w;
  if (queries.defined()) {
    uq = project(tape, zq, weight, {{0, w}, {2 * w, 3 * w}}, w);     // (Tq, 2 w)
    vk = project(tape, z, weight, {{w, 2 * w}, {3 * w, 4 * w}}, 0);  // (T, 2 w)
  } else {
    uq = vk = project(tape, z, weight, {{0, 4 * w}}, w);  // (T, 4 w)
    v_at = w, q_at = 2 * w, k_at = 3 * w;
  }
  stage.next(kAttentionStage);
  const Variable o = ops::attention(tape, uq.operand(q_at, w), vk.operand(k_at, w), vk.operand(v_at, w),
                                    shape);  // (Tq, w)
  stage.next(kGateStage);
  const Variable gated = ops::gate(tape, config_.gate, {uq.y, 0, w}, o, Variable(output_norm_.weight),
                                   Variable(output_norm_.bias), config_.epsilon,
                                   dropout);  // (Tq, 3 w) or (Tq, w)
  stage.next(kProjectionStage);
  const Variable projection = ops::weight(tape, output_, type);
  Variable y;
  if (config_.residual) {
    const Variable xq = queries.defined() ? ops::gather_rows(tape, x, queries) : x;  // (Tq, D)
    y = ops::linear_residual(tape, gated, projection, xq);
  } else {
    y = ops::linear(tape, gated, projection, {});
  }
  if (config_.recompute.norm) z.drop_value();
  if (config_.recompute.silu && uq.activated.defined()) uq.activated.drop_value(), vk.activated.drop_value();
  if (config_.recompute.gate) gated.drop_value();
  return y;
}

// Columns of z W + b: (n, sum of widths). The gate activates U; NVIDIA's form activates the others here.
HstuLayer::Projected HstuLayer::project(Tape& tape, const Variable& z, const Variable& weight,
                                        const std::vector<ColumnRange>& columns,
                                        std::int64_t activated_from) const {
  const Variable bias(uvqk_.bias);
  if (config_.gate == ops::GateForm::concat)
    return {ops::linear_columns(tape, z, weight, bias, columns), {}, 0};
  const auto [y, activated] = ops::linear_silu(tape, z, weight, bias, columns, activated_from);
  return {y, activated, activated_from};
}

ops::Columns HstuLayer::Projected::operand(std::int64_t first, std::int64_t width) const {
  if (!activated.defined()) return {y, first, width};
  return {y, first, width, activated, first - activated_from};
}

}  // namespace hstu
