// One HSTU layer: norm, projection to U, V, Q, K, attention, gate, projection onto the residual stream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/comm/groups.h"
#include "hstu/model/layer_norm.h"
#include "hstu/model/recompute.h"
#include "hstu/model/relative_bias.h"
#include "hstu/ops/attention.h"
#include "hstu/ops/dropout.h"
#include "hstu/ops/gate.h"
#include "hstu/ops/linear.h"

namespace hstu {

struct HstuLayerConfig {
  std::int64_t dim = 0;                        // D: width of the residual stream
  std::int64_t heads = 0;                      // H
  std::int64_t head_dim = 0;                   // width of a head's queries, keys and values
  ops::GateForm gate = ops::GateForm::concat;  // product: v, q and k are activated too, not u alone
  double epsilon = 1e-6;                       // of both layer norms
  bool residual = true;                        // false: the output is the projection alone
  Recompute recompute = {};
  bool norm_affine = true;    // both norms have a weight and a bias
  bool uvqk_bias = true;      // of U, V, Q, K
  bool output_bias = false;   // of the projection
  double alpha = 0;           // factor of q . k; 0: 1 / sqrt(head_dim)
  double uvqk_deviation = 0;  // of normal initial values of the weight of U, V, Q, K; 0: xavier-uniform
  RelativeBiasConfig bias = {};
};

// The tokens of the ranks of a tensor group, each of which computes its heads for all of them.
struct GroupRows {
  const Group* group = nullptr;               // null: this rank computes all heads of its own tokens
  std::vector<std::int64_t> given, returned;  // (ranks) rows of x, and of the result
  // (n) i32: this rank's rows of the result among its rows of x; undefined: all.
  Tensor own_queries = {};
};

class HstuLayer {
 public:
  // Adds PREFIX.input_norm, PREFIX.uvqk, PREFIX.output_norm, PREFIX.output and PREFIX.bias to the set, as far
  // as the configuration has them. ParameterSet::divide() divides what belongs to heads.
  HstuLayer(ParameterSet& set, const std::string& prefix, const HstuLayerConfig& config);

  // x (T, D) -> (Tq, D). `queries` (Tq) i32 lists the tokens to compute, in order; undefined: all T. Computes
  // everything but keys and values only for them, which is exact because rows interact only in the attention.
  // shape's query_offsets must agree; shape.bias has the thresholds and times of a time table. Where the
  // heads are divided, x and the result are this rank's, and `queries`, shape and dropout are of the tokens
  // of all ranks, in their order; the ranks of the group call it together.
  Variable operator()(Tape& tape, const Variable& x, const Tensor& queries, const ops::AttentionShape& shape,
                      const ops::Dropout& dropout, const GroupRows& ranks = {}) const;

  bool is_divided() const { return uvqk_.division.is_divided(); }
  // Heads that this rank has.
  std::int64_t own_heads() const { return uvqk_.value.cols() / (4 * config_.head_dim); }

 private:
  struct Projected {
    Variable y, activated;  // activated: undefined if attention reads y itself
    std::int64_t activated_from = 0;
    // Columns of y, through SiLU where they are activated.
    ops::Columns operand(std::int64_t first, std::int64_t width) const;
  };
  Variable compute(Tape& tape, const Variable& x, const Tensor& queries, const ops::AttentionShape& shape,
                   const ops::Dropout& dropout, const GroupRows& ranks) const;
  Variable output(Tape& tape, const Variable& gated, const Variable& x, const Tensor& queries) const;
  Variable output_of_ranks(Tape& tape, const Variable& gated, const Variable& x,
                           const GroupRows& ranks) const;
  Projected project_all(Tape& tape, const Variable& own, const Variable& weight, const GroupRows& ranks,
                        Variable& z) const;
  ops::AttentionShape with_own_heads(ops::AttentionShape shape) const;
  Projected project(Tape& tape, const Variable& z, const Variable& weight,
                    const std::vector<ColumnRange>& columns, std::int64_t activated_from) const;

  HstuLayerConfig config_;
  std::int64_t width_;  // H * head_dim, of the heads of all ranks
  LayerNorm input_norm_;
  // Below, a rank that shares the heads has the width of its own ones.
  const Parameter& uvqk_;       // (D, 4 * width)
  const Parameter* uvqk_bias_;  // (4 * width); null: none
  LayerNorm output_norm_;
  const Parameter& output_;       // (width, D), or (3 * width, D) if the gate's parts are concatenated
  const Parameter* output_bias_;  // (D); null: none
  LayerBias bias_;
};

}  // namespace hstu
