// The stack of HSTU layers: maps token sequences to the output rows that the caller needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hstu/model/draws.h"
#include "hstu/model/hstu_layer.h"
#include "hstu/ops/history_keys.h"

namespace hstu {

struct HstuStackConfig {
  std::int64_t layers = 0;
  HstuLayerConfig layer;
  double dropout = 0;
};

// Some tokens of each sample: all of them, or the last few.
struct StackRows {
  Tensor rows;     // (n) i32, the tokens in order; undefined: all
  Tensor offsets;  // (B + 1) i64: those of sample b are offsets[b] .. offsets[b + 1] - 1
  Tensor names;    // (n) i64, token_name() of each
  // With a time table: (n) i64, the time at which each token asks; (T) i64, that of every token's event, in
  // the rows of all tokens alone.
  Tensor query_time = {}, key_time = {};
  // Not null: ranks share the samples (shared_samples.h). `rows` and `names` are then of this rank's tokens
  // alone, and all else of all tokens.
  std::shared_ptr<const ops::AttentionDivision> division = {};
};

// Which tokens see which (attention/mask.h): causal without contexts and targets.
struct StackMask {
  AttentionMask mask;
  Tensor contexts;                    // (B) i32 first tokens of each sample; undefined: none
  Tensor targets;                     // (B) i32 last tokens of each sample; undefined: none
  const HistoryKeys* keys = nullptr;  // of the samples' earlier tokens
  Tensor sample_scale = {};           // (B) further factors of `scale`; undefined: 1
};

// The tokens of a pass. scale: the factor of silu(alpha q . k + bias).
struct StackTokens {
  StackRows all, wanted;
  StackMask mask;
  double scale = 1;
};

struct GroupBatch;  // group_batch.h

class HstuStack {
 public:
  // Adds PREFIX.0, PREFIX.1, ... to the set.
  HstuStack(ParameterSet& set, const std::string& prefix, const HstuStackConfig& config);

  // x (T, D) -> (n, D) of the `wanted` tokens. The last layer computes only these, which is exact because
  // rows interact only in the attention. scale is the factor of silu(alpha q . k + bias). Layer i draws
  // its dropout at place first_place + i. Where ParameterSet::divide() has divided the layers, the ranks of
  // the tensor group in Context::groups call it together, each with samples of its own, or none. Where these
  // have context groups, their ranks compute long samples together (shared_samples.h) and all call it
  // together.
  Variable operator()(Tape& tape, const Variable& x, const StackRows& all, const StackRows& wanted,
                      double scale, const Draws& draws, std::uint64_t first_place,
                      const StackMask& mask = {}) const;

  const HstuStackConfig& config() const { return config_; }

 private:
  bool is_divided() const { return !layers_.empty() && layers_.front().is_divided(); }
  std::int64_t own_heads() const { return layers_.empty() ? 0 : layers_.front().own_heads(); }
  Variable compute(Tape& tape, const Variable& x, const StackTokens& tokens, const Draws& draws,
                   std::uint64_t first_place) const;
  Variable run(Tape& tape, Variable x, const StackTokens& tokens, const Draws& draws,
               std::uint64_t first_place, const GroupBatch* group) const;

  HstuStackConfig config_;
  std::vector<HstuLayer> layers_;
  const Tensor* thresholds_ = nullptr;  // of the time tables; null: the layers have none
};

}  // namespace hstu
