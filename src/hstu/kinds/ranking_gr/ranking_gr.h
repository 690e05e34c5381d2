// The ranking model of NVIDIA's recsys-examples (RankingGR): maps a user's items and actions to logits for
// each candidate item.
//
//   x = drop(sqrt(D) mlp(row) + position), for contextual, item and action tokens
//   y = the item tokens of the candidates after L layers of HstuLayer (ops::GateForm::product), each divided
//   by
//       its Euclidean norm
//   logits = head(y)
//
// Values that depend on an id alone are computed once for each distinct id, and gather_sum interleaves and
// concatenates them (docs/decisions/0030-second-model.md).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/kinds/ranking_gr/ranking_gr_config.h"
#include "hstu/kinds/ranking_gr/ranking_gr_layout.h"
#include "hstu/model/activated_mlp.h"
#include "hstu/model/hstu_stack.h"
#include "hstu/model/model.h"

namespace hstu {

class RankingGr final : public Model {
 public:
  // `action` is the feature of the action ids; unused if config.actions is false.
  RankingGr(const RankingGrConfig& config, SampleFeatures features, FeatureSpec action, std::uint64_t seed,
            DType type = DType::f32);

  const ParameterSet& parameters() const override { return parameters_; }
  ParameterSet& parameters() override { return parameters_; }
  void move_to(const Context& context, DType compute) override;
  std::vector<FeatureSpec> features() const override { return layout_.features(); }
  std::int64_t embedding_dim() const override { return config_.embedding_dim; }
  bool shares_histories() const override;
  // Contexts and events, where neither sees what is behind it.
  KeptTokens kept_tokens() const override;
  const BatchLayout& layout() const override { return layout_; }

  Variable forward(Tape& tape, const Batch& batch, std::span<const Variable> rows,
                   const Draws& draws) const override;
  HstuStackConfig layers() const override { return stack_.config(); }
  StackFlops flops(const Batch& batch) const override;

 private:
  Variable sequence(Tape& tape, const Batch& batch, std::span<const Variable> rows, const Draws& draws) const;
  Variable encode(Tape& tape, const Variable& x, const Batch& batch, const Draws& draws) const;
  Variable preprocess(Tape& tape, const std::vector<ActivatedMlp>& mlp, const Variable& rows) const;

  RankingGrConfig config_;
  RankingGrLayout layout_;
  ParameterSet parameters_;
  DType compute_;                                     // of what is computed for every token
  std::vector<ActivatedMlp> item_mlp_, context_mlp_;  // one each, or none
  const Parameter& position_;                         // (positions, D)
  HstuStack stack_;
  ActivatedMlp head_;
};

}  // namespace hstu
