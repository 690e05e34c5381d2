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
  // The weight's columns are [U, V, Q, K].
  const std::int64_t w = width_;
  const Variable u = ops::linear_columns(tape, zq, weight, bias, {{0, w}});                      // (Tq, w)
  const Variable q = ops::linear_columns(tape, zq, weight, bias, {{2 * w, 3 * w}});              // (Tq, w)
  const Variable vk = ops::linear_columns(tape, z, weight, bias, {{w, 2 * w}, {3 * w, 4 * w}});  // (T, 2 w)
  stage.next(kAttentionStage);
  const Variable o = ops::attention(tape, q, vk, shape);  // (Tq, w)
  stage.next(kGateStage);
  const Variable cat = ops::gate(tape, u, o, Variable(output_norm_.weight), Variable(output_norm_.bias),
                                 kLayerEpsilon, dropout);  // (Tq, 3 w)
  stage.next(kProjectionStage);
  return ops::linear_residual(tape, cat, ops::weight(tape, output_, type), xq);
}

}  // namespace hstu
