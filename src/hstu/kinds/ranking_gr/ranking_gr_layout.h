// The tokens of a batch of the ranking model: sample b is [contextual tokens, item 0, action 0, item 1,
// action 1,
// ...], its candidates last. Alphabet: B samples, C contextual tokens per sample, T tokens in total, Tq
// tokens of candidates, R examples.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "hstu/attention/mask.h"
#include "hstu/batching/batch_layout.h"
#include "hstu/kinds/ranking_gr/ranking_gr_config.h"
#include "hstu/model/hstu_layer.h"

namespace hstu {

// Columns in addition to those of every batch and of the features. The item's index is (T): the row of the
// distinct items for each item token, -1 elsewhere.
namespace ranking_gr {
inline constexpr std::string_view kOffsets = kTokenOffsetsColumn;
inline constexpr std::string_view kTokenName = "token.name";      // (T) i64, token_name()
inline constexpr std::string_view kContext = "token.context";     // (T) i32, see below; -1 elsewhere
inline constexpr std::string_view kPosition = "token.position";   // (T) i32, row of the position table
inline constexpr std::string_view kContexts = "sample.contexts";  // (B) i32 contextual tokens
inline constexpr std::string_view kTargets = "sample.targets";    // (B) i32 tokens of candidates
// The tokens that the last layer computes. None of these columns where every item is a candidate: all tokens.
inline constexpr std::string_view kQuery = "query.token";           // (Tq) i32 the tokens of candidates
inline constexpr std::string_view kQueryName = "query.name";        // (Tq) i64, their token_name()
inline constexpr std::string_view kQueryOffsets = "query.offsets";  // (B + 1) i64
inline constexpr std::string_view kExample = "example.query";       // (R) i32 an item token among those
inline constexpr std::string_view kExampleUser = "example.user";    // (R) i64
inline constexpr std::string_view kExampleAnchor =
    "example.position";                                             // (R) i64, sample.position of its sample
inline constexpr std::string_view kExampleLabel = "example.label";  // (R) i64, bits or class
// (R) f32, factor of its loss; only of samples with weights.
inline constexpr std::string_view kExampleWeight = "example.weight";
}  // namespace ranking_gr

// A contextual token reads a row of the distinct ids of all contextual features, one feature after the other.
// The action's feature, if there is one, is the last of features(); its index is (T), -1 elsewhere.
class RankingGrLayout final : public BatchLayout {
 public:
  RankingGrLayout(const RankingGrConfig& config, SampleFeatures features, FeatureSpec action)
      : config_(config), features_(std::move(features)), action_(std::move(action)) {}

  const SampleFeatures& sample_features() const { return features_; }
  const FeatureSpec& action() const { return action_; }
  std::vector<FeatureSpec> features() const;  // item, contextual features, action
  void lay_out(const Samples& samples, LayoutScratch& scratch, Batch& batch) const override;

 private:
  void add_tokens(const Samples& samples, const LayoutScratch& scratch, Batch& batch) const;
  void add_candidates(const Samples& samples, Batch& batch) const;

  RankingGrConfig config_;
  SampleFeatures features_;
  FeatureSpec action_;
};

// Row of the position table of token n of a sample whose first `history` tokens are not candidates: counted
// from the first token; all candidates share the row after the history, and older rows never run out: min(n,
// history, positions - 1). Without candidates `history` is the length of the sample.
std::int32_t ranking_position_row(std::int64_t n, std::int64_t history, std::int64_t positions);

// The layers, and which tokens see each other: in any sequence, and in one of `tokens` tokens of which the
// first `contexts` are contextual and the last `targets` are candidates.
HstuLayerConfig ranking_layer(const RankingGrConfig& config);
AttentionMask ranking_mask(const RankingGrConfig& config);
SampleMask ranking_mask(const RankingGrConfig& config, std::int64_t tokens, std::int32_t contexts,
                        std::int32_t targets);

}  // namespace hstu
