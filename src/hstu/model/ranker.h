// The ranking model of DLRMv4: embeddings of a user's history and of one candidate in, a logit out.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/model/config.h"
#include "hstu/model/hstu_layer.h"
#include "hstu/model/mlp.h"
#include "hstu/model/token_layout.h"

namespace hstu {

// Rows of one feature and, for each item or sample that has the feature, which row is its.
struct FeatureRows {
  Variable rows;  // (n, E)
  Tensor index;   // (I) for attributes, (B) for contextual features
};

// The embeddings of a batch.
struct LookedUpRows {
  Variable items;                       // (I, E), Batch::items
  std::vector<FeatureRows> attributes;  // ModelConfig::attributes of them
  std::vector<FeatureRows> context;     // ModelConfig::context of them
};

class Ranker {
 public:
  Ranker(const ModelConfig& config, std::uint64_t seed, DType type = DType::f32);

  // Logits (B, 1). dropout_key is one number per step; 0 switches dropout off (evaluation).
  Variable operator()(Tape& tape, const Batch& batch, const LookedUpRows& rows,
                      std::uint64_t dropout_key) const;

  const ParameterSet& parameters() const { return parameters_; }
  const ModelConfig& config() const { return config_; }

 private:
  Variable contextual_tokens(Tape& tape, const LookedUpRows& rows) const;
  Variable item_content(Tape& tape, const LookedUpRows& rows) const;
  Variable sequence(Tape& tape, const TokenLayout& layout, const LookedUpRows& rows,
                    std::uint64_t dropout_key) const;
  Variable encode_users(Tape& tape, Variable x, const TokenLayout& layout, std::uint64_t dropout_key) const;
  Variable postprocess(Tape& tape, const Variable& x, const TokenLayout& layout) const;
  Variable encode_candidates(Tape& tape, const Batch& batch, const LookedUpRows& rows) const;

  ModelConfig config_;
  ParameterSet parameters_;
  Mlp content_;
  std::vector<Mlp> additional_;  // one, or none without item attributes
  const Parameter &action_table_, &action_target_;
  Mlp action_;
  const Parameter &context_weight_, &context_bias_;
  const Parameter &position_, &time_;
  std::vector<HstuLayer> layers_;
  LinearParameters post_linear_;
  NormParameters post_norm_;
  Mlp item_;
  LinearParameters head_first_;
  NormParameters head_swish_;
  LinearParameters head_second_;
};

}  // namespace hstu
