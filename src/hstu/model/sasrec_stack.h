// The stack of SASRec blocks, the baseline of HSTU for retrieval: softmax attention and a small MLP. Source:
// "Self-Attentive Sequential Recommendation", in the form of Meta's generative-recommenders: queries are
// normalised, keys and values are not.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hstu/model/draws.h"
#include "hstu/model/hstu_stack.h"
#include "hstu/model/layer_flops.h"
#include "hstu/model/layer_norm.h"
#include "hstu/model/mlp.h"

namespace hstu {

struct SasrecStackConfig {
  std::int64_t layers = 0;
  std::int64_t dim = 0;    // E: width of tokens
  std::int64_t heads = 0;  // H, which divides E: a head has E / H columns
  double dropout = 0;      // of the attention's weights and of both layers of the MLP
  double epsilon = 1e-8;   // of the norms, which have no weight and bias
};

class SasrecBlock {
 public:
  // Adds PREFIX.query, PREFIX.key_value, PREFIX.output, PREFIX.mlp.0 and PREFIX.mlp.1 to the set.
  SasrecBlock(ParameterSet& set, const std::string& prefix, const SasrecStackConfig& config);

  // Places of draws that a block takes.
  static constexpr std::uint64_t kPlaces = 3;

  // x (T, E) -> (n, E) of the tokens `rows`. shape's query_offsets must agree.
  Variable operator()(Tape& tape, const Variable& x, const StackRows& rows, const ops::AttentionShape& shape,
                      const Draws& draws, std::uint64_t first_place) const;

 private:
  SasrecStackConfig config_;
  LayerNorm query_norm_, mlp_norm_;
  LinearParameters query_, key_value_, output_, first_, second_;
};

class SasrecStack {
 public:
  // Adds the blocks PREFIX.0, PREFIX.1, ... to the set. Throws UsageError if the heads do not divide the
  // width.
  SasrecStack(ParameterSet& set, const std::string& prefix, const SasrecStackConfig& config);

  // x (T, E) -> (n, E) of the `wanted` tokens; causal. Block i draws its dropout at the places
  // first_place + kPlaces * i on. keys: of the samples' earlier tokens.
  Variable operator()(Tape& tape, Variable x, const StackRows& all, const StackRows& wanted,
                      const Draws& draws, std::uint64_t first_place, const HistoryKeys* keys = nullptr) const;

  const SasrecStackConfig& config() const { return config_; }

 private:
  SasrecStackConfig config_;
  std::vector<SasrecBlock> blocks_;
};

// Of the blocks for a batch, as layer_flops.h counts: uvqk is the product of queries, keys and values,
// projection those of the attention's output and of the MLP, which a block has in place of HSTU's gate.
StackFlops sasrec_flops(const SasrecStackConfig& stack, std::span<const SampleQueries> samples);

}  // namespace hstu
