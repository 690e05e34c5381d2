#include "hstu/model/hstu_layer.h"

#include <algorithm>
#include <cmath>

#include "hstu/model/stages.h"
#include "hstu/ops/convert.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/exchange.h"
#include "hstu/ops/gate.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/linear_of_ranks.h"

namespace hstu {
namespace {

Initializer initial_uvqk(const HstuLayerConfig& config, std::int64_t width) {
  return config.uvqk_deviation > 0 ? Initializer::normal(config.uvqk_deviation)
                                   : Initializer::xavier_uniform(config.dim, 4 * width);
}

const Parameter* add_if(bool wanted, ParameterSet& set, const std::string& name, std::int64_t width,
                        const Initializer& initializer, const Divisible& divisible = {}) {
  return wanted ? &set.add_divisible(name, {width}, initializer, divisible) : nullptr;
}

// Of every row.
Variable add_row(Tape& tape, const Variable& x, const Parameter& row) {
  constexpr std::int64_t kDepth = 8;  // of a product of zeros, which adds a bias as every product does
  const DType type = x.value().dtype();
  const Variable zeros = Variable::constant(Tensor::zeros({x.rows(), kDepth}, type, tape.context())),
                 weight = Variable::constant(Tensor::zeros({kDepth, x.cols()}, type, tape.context()));
  return ops::add(tape, ops::linear(tape, zeros, weight, Variable(row)), x);
}

constexpr Divisible kHeads{.axis = 0, .blocks = 1};  // of a tensor (width, ...)

Variable variable_of(const Parameter* parameter) {
  return parameter != nullptr ? Variable(*parameter) : Variable();
}

}  // namespace

HstuLayer::HstuLayer(ParameterSet& set, const std::string& prefix, const HstuLayerConfig& config)
    : config_(config),
      width_(config.heads * config.head_dim),
      input_norm_(set, prefix + ".input_norm", config.dim, config.epsilon, config.norm_affine),
      uvqk_(set.add_divisible(prefix + ".uvqk.weight", {config.dim, 4 * width_}, initial_uvqk(config, width_),
                              {.axis = 1, .blocks = 4})),
      uvqk_bias_(add_if(config.uvqk_bias, set, prefix + ".uvqk.bias", 4 * width_, Initializer::zeros(),
                        {.axis = 0, .blocks = 4})),
      output_norm_(set, prefix + ".output_norm", width_, config.epsilon, config.norm_affine, kHeads),
      output_(set.add_divisible(
          prefix + ".output.weight", {kernels::gate_parts(config.gate) * width_, config.dim},
          Initializer::xavier_uniform(kernels::gate_parts(config.gate) * width_, config.dim),
          {.axis = 0, .blocks = kernels::gate_parts(config.gate)})),
      output_bias_(add_if(config.output_bias, set, prefix + ".output.bias", config.dim,
                          Initializer::uniform(1 / std::sqrt(static_cast<double>(output_.value.rows()))))),
      bias_(set, prefix + ".bias", config.bias) {}

Variable HstuLayer::operator()(Tape& tape, const Variable& x, const Tensor& queries,
                               const ops::AttentionShape& shape, const ops::Dropout& dropout,
                               const GroupRows& ranks) const {
  require(is_divided() == (ranks.group != nullptr), "a layer and its tokens are divided differently");
  if (!config_.recompute.layer) return compute(tape, x, queries, shape, dropout, ranks);
  return tape.recompute([=, this, &tape] { return compute(tape, x, queries, shape, dropout, ranks); });
}

Variable HstuLayer::compute(Tape& tape, const Variable& x, const Tensor& queries,
                            const ops::AttentionShape& shape, const ops::Dropout& dropout,
                            const GroupRows& ranks) const {
  StageRange stage(tape, kNormUvqkStage);
  const Variable weight = ops::weight(tape, uvqk_, x.value().dtype());
  const Variable own = input_norm_(tape, x);
  Variable z = own;  // (T, D)
  // The weight's columns are [U, V, Q, K]. Where every token is a query, one product has them all.
  const std::int64_t w = uvqk_.value.cols() / 4;
  Projected uq, vk;
  std::int64_t v_at = 0, q_at = w, k_at = w;
  if (queries.defined()) {
    if (ranks.group != nullptr) z = ops::all_gather_rows(tape, own, ranks.given, *ranks.group);
    const Variable zq = ops::gather_rows(tape, z, queries);          // (Tq, D)
    uq = project(tape, zq, weight, {{0, w}, {2 * w, 3 * w}}, w);     // (Tq, 2 w)
    vk = project(tape, z, weight, {{w, 2 * w}, {3 * w, 4 * w}}, 0);  // (T, 2 w)
  } else {
    uq = vk = ranks.group != nullptr ? project_all(tape, own, weight, ranks, z)
                                     : project(tape, z, weight, {{0, 4 * w}}, w);  // (T, 4 w)
    v_at = w, q_at = 2 * w, k_at = 3 * w;
  }
  stage.next(kAttentionStage);
  const Variable o = ops::attention(tape, uq.operand(q_at, w), vk.operand(k_at, w), vk.operand(v_at, w),
                                    with_own_heads(bias_.with_tables(shape)));  // (Tq, w)
  stage.next(kGateStage);
  const Variable gated = ops::gate(tape, config_.gate, {uq.y, 0, w}, o, output_norm_.weight(),
                                   output_norm_.bias(), config_.epsilon, dropout,
                                   ranks.group);  // (Tq, 3 w) or (Tq, w)
  stage.next(kProjectionStage);
  Variable y =
      ranks.group != nullptr ? output_of_ranks(tape, gated, x, ranks) : output(tape, gated, x, queries);
  if (config_.recompute.norm) own.drop_value(), z.drop_value();
  if (config_.recompute.silu && uq.activated.defined()) uq.activated.drop_value(), vk.activated.drop_value();
  if (config_.recompute.gate) gated.drop_value();
  return y;
}

// The projection of gated (Tq, 3 w) or (Tq, w), and the residual of x (T, D): (Tq, D).
Variable HstuLayer::output(Tape& tape, const Variable& gated, const Variable& x,
                           const Tensor& queries) const {
  const Variable projection = ops::weight(tape, output_, x.value().dtype());
  if (!config_.residual) return ops::linear(tape, gated, projection, variable_of(output_bias_));
  const Variable xq = queries.defined() ? ops::gather_rows(tape, x, queries) : x;
  return ops::linear_residual(tape, gated, projection, variable_of(output_bias_), xq);
}

// The same of the tokens of all ranks, by the rows of the projection that this rank has: this rank's tokens.
Variable HstuLayer::output_of_ranks(Tape& tape, const Variable& gated, const Variable& x,
                                    const GroupRows& ranks) const {
  Variable residual;
  if (config_.residual)
    residual = ranks.own_queries.defined() ? ops::gather_rows(tape, x, ranks.own_queries) : x;
  const Variable y = ops::scattered_linear(tape, gated, ops::weight(tape, output_, x.value().dtype()),
                                           ranks.returned, *ranks.group, residual);
  return output_bias_ != nullptr ? add_row(tape, y, *output_bias_) : y;
}

ops::AttentionShape HstuLayer::with_own_heads(ops::AttentionShape shape) const {
  shape.heads = own_heads();
  return shape;
}

// Columns of z W + b: (n, sum of widths). The gate activates U; NVIDIA's form activates the others here.
HstuLayer::Projected HstuLayer::project(Tape& tape, const Variable& z, const Variable& weight,
                                        const std::vector<ColumnRange>& columns,
                                        std::int64_t activated_from) const {
  const Variable bias = variable_of(uvqk_bias_);
  if (config_.gate == ops::GateForm::concat)
    return {ops::linear_columns(tape, z, weight, bias, columns), {}, 0};
  const auto [y, activated] = ops::linear_silu(tape, z, weight, bias, columns, activated_from);
  return {y, activated, activated_from};
}

// U, V, Q, K of the tokens z of all ranks, from this rank's: (T, 4 w).
HstuLayer::Projected HstuLayer::project_all(Tape& tape, const Variable& own, const Variable& weight,
                                            const GroupRows& ranks, Variable& z) const {
  const std::int64_t w = weight.cols() / 4, activated_from = config_.gate == ops::GateForm::concat ? -1 : w;
  const auto [product, all] = ops::linear_of_gathered(tape, own, ranks.given, *ranks.group, weight,
                                                      variable_of(uvqk_bias_), {{0, 4 * w}}, activated_from);
  z = all;
  return {product.y, product.activated, std::max<std::int64_t>(0, activated_from)};
}

ops::Columns HstuLayer::Projected::operand(std::int64_t first, std::int64_t width) const {
  if (!activated.defined()) return {y, first, width};
  return {y, first, width, activated, first - activated_from};
}

}  // namespace hstu
