#include "hstu/model/hstu_layer.h"

#include "hstu/model/stages.h"
#include "hstu/ops/convert.h"
#include "hstu/ops/gate.h"
#include "hstu/ops/gather_sum.h"
#include "hstu/ops/linear.h"
#include "hstu/ops/norm.h"

namespace hstu {
namespace {

constexpr double kLayerEpsilon = 1e-6;

}  // namespace

HstuLayer::HstuLayer(ParameterSet& set, const std::string& prefix, const HstuLayerConfig& config)
    : width_(config.heads * config.head_dim),
      input_norm_(add_norm(set, prefix + ".input_norm", config.dim)),
      uvqk_(add_linear(set, prefix + ".uvqk", config.dim, 4 * width_,
                       Initializer::xavier_uniform(config.dim, 4 * width_))),
      output_norm_(add_norm(set, prefix + ".output_norm", width_)),
      output_(set.add(prefix + ".output.weight", {3 * width_, config.dim},
                      Initializer::xavier_uniform(3 * width_, config.dim))) {}

Variable HstuLayer::operator()(Tape& tape, const Variable& x, const Tensor& queries,
                               const ops::AttentionShape& shape, const ops::Dropout& dropout) const {
  const DType type = x.value().dtype();
  StageRange stage(tape, kNormUvqkStage);
  const Variable weight = ops::weight(tape, uvqk_.weight, type), bias(uvqk_.bias);
  const Variable z = ops::layer_norm(tape, x, Variable(input_norm_.weight), Variable(input_norm_.bias),
                                     kLayerEpsilon);                               // (T, D)
  const Variable zq = queries.defined() ? ops::gather_rows(tape, z, queries) : z;  // (Tq, D)
  const Variable xq = queries.defined() ? ops::gather_rows(tape, x, queries) : x;  // (Tq, D)
  // The weight's columns are [U, V, Q, K]. Where every token is a query, so are those of one product.
  const std::int64_t w = width_;
  Variable uq, vk;
  std::int64_t v_at = 0, q_at = w, k_at = w;
  if (queries.defined()) {
    uq = ops::linear_columns(tape, zq, weight, bias, {{0, w}, {2 * w, 3 * w}});     // (Tq, 2 w)
    vk = ops::linear_columns(tape, z, weight, bias, {{w, 2 * w}, {3 * w, 4 * w}});  // (T, 2 w)
  } else {
    uq = vk = ops::linear(tape, z, weight, bias);  // (T, 4 w)
    v_at = w, q_at = 2 * w, k_at = 3 * w;
  }
  stage.next(kAttentionStage);
  const Variable o = ops::attention(tape, {uq, q_at, w}, {vk, k_at, w}, {vk, v_at, w}, shape);  // (Tq, w)
  stage.next(kGateStage);
  const Variable y = ops::gate(tape, ops::GateForm::concat, {uq, 0, w}, o, Variable(output_norm_.weight),
                               Variable(output_norm_.bias), kLayerEpsilon, dropout);  // (Tq, 3 w)
  stage.next(kProjectionStage);
  return ops::linear_residual(tape, y, ops::weight(tape, output_, type), xq);
}

}  // namespace hstu
