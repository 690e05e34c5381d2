// The ranking model of DLRMv4: maps embeddings of a user's history and of one candidate to a logit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/kinds/dlrmv4/dlrmv4_config.h"
#include "hstu/kinds/dlrmv4/dlrmv4_layout.h"
#include "hstu/model/hstu_stack.h"
#include "hstu/model/mlp.h"
#include "hstu/model/model.h"

namespace hstu {

class Dlrmv4 final : public Model {
 public:
  Dlrmv4(const Dlrmv4Config& config, SampleFeatures features, std::uint64_t seed, DType type = DType::f32);

  const ParameterSet& parameters() const override { return parameters_; }
  ParameterSet& parameters() override { return parameters_; }
  void move_to(const Context& context, DType compute) override;
  std::vector<FeatureSpec> features() const override { return layout_.features().all(); }
  std::int64_t embedding_dim() const override { return config_.embedding_dim; }
  bool shares_histories() const override { return true; }
  const BatchLayout& layout() const override { return layout_; }

  Variable forward(Tape& tape, const Batch& batch, std::span<const Variable> rows,
                   const Draws& draws) const override;
  HstuStackConfig layers() const override { return stack_.config(); }
  StackFlops flops(const Batch& batch) const override;

 private:
  // The looked-up rows by kind of feature.
  struct Rows {
    Variable items;                        // (I, E)
    std::span<const Variable> attributes;  // (n, E) each
    std::span<const Variable> context;     // (n, E) each
  };
  Rows by_kind(std::span<const Variable> rows) const;
  Variable contextual_tokens(Tape& tape, const Batch& batch, const Rows& rows) const;
  Variable item_content(Tape& tape, const Batch& batch, const Rows& rows) const;
  Variable sequence(Tape& tape, const Batch& batch, const Rows& rows, const Draws& draws) const;
  Variable encode_users(Tape& tape, const Variable& x, const Batch& batch, const Draws& draws) const;
  Variable postprocess(Tape& tape, const Variable& x, const Batch& batch) const;
  Variable encode_candidates(Tape& tape, const Batch& batch, const Rows& rows) const;

  Dlrmv4Config config_;
  Dlrmv4Layout layout_;
  ParameterSet parameters_;
  Mlp content_;
  const Parameter &action_table_, &action_target_;
  DType compute_;       // of what is computed for every token
  Tensor action_bits_;  // (bits) u8
  Mlp action_;
  const Parameter &context_weight_, &context_bias_;
  const Parameter &position_, &time_;
  LinearParameters post_linear_;
  NormParameters post_norm_;
  Mlp item_;
  LinearParameters head_first_;
  NormParameters head_swish_;
  LinearParameters head_second_;
  std::vector<Mlp> additional_;  // one; none without item attributes
  HstuStack stack_;
};

}  // namespace hstu
