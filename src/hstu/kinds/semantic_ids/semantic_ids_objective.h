// What is asked of the model of semantic ids: in training the codes of the targets, in evaluations the rank
// of the target's item in the list that a search finds.
#pragma once

#include <memory>
#include <vector>

#include "hstu/codes/code_trie.h"
#include "hstu/kinds/semantic_ids/semantic_ids.h"
#include "hstu/objective/list_objective.h"

namespace hstu {

class SemanticIdsObjective final : public ListObjective {
 public:
  // `model` computes the logits; it outlives this.
  SemanticIdsObjective(SemanticIds& model, const SemanticIdsConfig& config,
                       std::shared_ptr<const ItemCodes> codes, std::shared_ptr<const CodeTrie> trie);

  bool ranks_items() const override { return true; }
  std::int64_t excluded_events(std::int64_t history) const override;
  // The mean over targets and levels of the cross entropy of the codes.
  Variable loss(const Pass& pass, const Variable& vectors) const override;
  std::unique_ptr<Tally> step_tally() const override;
  std::unique_ptr<Tally> evaluation_tally(const EvaluationSource& source) const override;
  std::unique_ptr<RunningMetrics> running_metrics(std::int64_t window_samples) const override;
  void measure(const Tally& evaluation, const ListQuestion& question,
               EvaluationResult& result) const override;
  void write_predictions(const Tally& evaluation, const Path& folder) const override;

  const std::vector<std::int64_t>& items() const override { return codes_->items; }
  void set_beam(std::int64_t beam) override;
  std::int64_t beam() const override { return config_.beam; }
  // The items of the tuples that were found, with their log-probabilities; those of one tuple by their ids.
  std::vector<kernels::ScoredItem> list(std::span<const float> output) const override;

 private:
  // Calls visit(tuple, log-probability) for the tuples of an output, in their order.
  template <typename Visit>
  void each_tuple(std::span<const float> output, const Visit& visit) const;
  // `seen` ascend.
  TargetRank rank_of(std::int64_t target, std::span<const float> output,
                     std::span<const std::int64_t> seen) const;

  SemanticIds& model_;
  SemanticIdsConfig config_;
  std::shared_ptr<const ItemCodes> codes_;
  std::shared_ptr<const CodeTrie> trie_;
};

}  // namespace hstu
