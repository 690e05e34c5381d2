// One HSTU layer: norm, projection to U, V, Q, K, attention, gate, projection onto the residual stream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/model/mlp.h"
#include "hstu/model/recompute.h"
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
};

class HstuLayer {
 public:
  // Adds PREFIX.input_norm, PREFIX.uvqk, PREFIX.output_norm, PREFIX.output to the set.
  HstuLayer(ParameterSet& set, const std::string& prefix, const HstuLayerConfig& config);

  // x (T, D) -> (Tq, D). `queries` (Tq) i32 lists the tokens to compute, in order; undefined: all T. Computes
  // everything but keys and values only for them, which is exact because rows interact only in the attention.
  // shape's query_offsets must agree.
  Variable operator()(Tape& tape, const Variable& x, const Tensor& queries, const ops::AttentionShape& shape,
                      const ops::Dropout& dropout) const;

 private:
  struct Projected {
    Variable y, activated;  // activated: undefined if attention reads y itself
    std::int64_t activated_from = 0;
    // Columns of y, through SiLU where they are activated.
    ops::Columns operand(std::int64_t first, std::int64_t width) const;
  };
  Variable compute(Tape& tape, const Variable& x, const Tensor& queries, const ops::AttentionShape& shape,
                   const ops::Dropout& dropout) const;
  Projected project(Tape& tape, const Variable& z, const Variable& weight,
                    const std::vector<ColumnRange>& columns, std::int64_t activated_from) const;

  HstuLayerConfig config_;
  std::int64_t width_;  // H * head_dim
  NormParameters input_norm_;
  LinearParameters uvqk_;
  NormParameters output_norm_;
  const Parameter& output_;  // (width, D), or (3 * width, D) if the gate's parts are concatenated
};

}  // namespace hstu
