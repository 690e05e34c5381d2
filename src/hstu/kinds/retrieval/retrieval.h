// The retrieval model: maps a user's history to a vector for each position whose next event is asked for
// (model/sequence_encoder.h), which is compared with the rows of all items.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/kinds/retrieval/retrieval_config.h"
#include "hstu/kinds/retrieval/retrieval_layout.h"
#include "hstu/model/model.h"
#include "hstu/model/sequence_encoder.h"

namespace hstu {

class Retrieval final : public Model {
 public:
  Retrieval(const RetrievalConfig& config, SampleFeatures features, std::uint64_t seed,
            DType type = DType::f32);

  const ParameterSet& parameters() const override { return parameters_; }
  ParameterSet& parameters() override { return parameters_; }
  void move_to(const Context& context, DType compute) override;
  std::vector<FeatureSpec> features() const override { return layout_.sample_features().all(); }
  std::int64_t embedding_dim() const override { return config_.embedding_dim; }
  const BatchLayout& layout() const override { return layout_; }

  // (R, E): unit vectors, unless the configuration asks for none; in training in the type of activations.
  Variable forward(Tape& tape, const Batch& batch, std::span<const Variable> rows,
                   const Draws& draws) const override;
  // All but the last event, whose query has the time of the request.
  KeptTokens kept_tokens() const override {
    return {.layers = encoder_.layers(),
            .width = encoder_.key_width(),
            .last_events = 1,
            .bias = encoder_.has_bias()};
  }
  HstuStackConfig layers() const override;
  StackFlops flops(const Batch& batch) const override;

 private:
  RetrievalConfig config_;
  RetrievalLayout layout_;
  ParameterSet parameters_;
  DType compute_;  // of what is computed for every token
  SequenceEncoder encoder_;
  const Parameter* action_;  // null: actions are not read
};

}  // namespace hstu
