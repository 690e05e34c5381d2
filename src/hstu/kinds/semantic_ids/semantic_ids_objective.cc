#include "hstu/kinds/semantic_ids/semantic_ids_objective.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/loss/cross_entropy.h"
#include "hstu/objective/retrieval_measures.h"
#include "hstu/objective/retrieval_questions.h"
#include "hstu/objective/unmeasured_training.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/gather_sum.h"

namespace hstu {

SemanticIdsObjective::SemanticIdsObjective(SemanticIds& model, const SemanticIdsConfig& config,
                                           std::shared_ptr<const ItemCodes> codes,
                                           std::shared_ptr<const CodeTrie> trie)
    : model_(model), config_(config), codes_(std::move(codes)), trie_(std::move(trie)) {}

std::int64_t SemanticIdsObjective::excluded_events(std::int64_t history) const {
  return hstu::excluded_events(config_.exclude_seen, history);
}

Variable SemanticIdsObjective::loss(const Pass& pass, const Variable& vectors) const {
  const std::int64_t levels = codes_->levels(), targets = vectors.rows() / levels;
  const auto column = [&](std::string_view name) {
    return pass.batch.has(name) ? pass.batch.tensor(name).reshaped({levels * targets}) : Tensor();
  };
  const loss::RowLabels codes{column(semantic_ids::kTargetCode), column(semantic_ids::kTargetCodeWeight)};
  const double factor = 1 / (static_cast<double>(pass.batch.supervised) * static_cast<double>(levels));
  if (config_.head == CodeHeads::shared)
    return loss::multi_class_cross_entropy(pass.tape, model_.logits(pass.tape, vectors), codes, factor);
  Variable sum;
  for (std::int64_t h = 0; h < levels; ++h) {
    const auto of = [&](const Tensor& x) {
      return x.defined() ? x.row_range(h * targets, (h + 1) * targets) : x;
    };
    const Variable of_level = ops::gather_rows(pass.tape, vectors, of(column(semantic_ids::kTargetRow)));
    const Variable part = loss::multi_class_cross_entropy(pass.tape, model_.logits(pass.tape, of_level, h),
                                                          {of(codes.labels), of(codes.weights)}, factor);
    sum = h == 0 ? part : ops::add(pass.tape, sum, part);
  }
  return sum;
}

std::unique_ptr<Tally> SemanticIdsObjective::step_tally() const {
  return std::make_unique<CountTally>(retrieval::kTarget);
}

std::unique_ptr<Tally> SemanticIdsObjective::evaluation_tally(const EvaluationSource& source) const {
  require(source.dataset != nullptr, "semantic ids: expected the dataset");
  const std::int64_t width = config_.beam * (codes_->levels() + 1);
  return std::make_unique<RetrievalTally>(
      width,
      [this, width](const std::vector<float>& outputs, const RetrievalQuestions& asked, Communicator&) {
        std::vector<TargetRank> ranks;
        for (std::size_t r = 0; r < asked.target.size(); ++r) {
          const auto output = std::span(outputs).subspan(r * static_cast<std::size_t>(width),
                                                         static_cast<std::size_t>(width));
          const auto begin = asked.seen_offsets[r], end = asked.seen_offsets[r + 1];
          ranks.push_back(
              rank_of(asked.target[r], output,
                      std::span(asked.seen)
                          .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))));
        }
        return ranks;
      },
      [dataset = source.dataset, seen = config_.exclude_seen](const Batch& batch) {
        return retrieval_questions(batch, *dataset, seen);
      });
}

template <typename Visit>
void SemanticIdsObjective::each_tuple(std::span<const float> output, const Visit& visit) const {
  const auto levels = static_cast<std::size_t>(codes_->levels());
  std::vector<std::int32_t> tuple(levels);
  for (std::size_t at = 0; at + levels < output.size(); at += levels + 1) {
    if (output[at] < 0) return;
    for (std::size_t h = 0; h < levels; ++h) tuple[h] = static_cast<std::int32_t>(output[at + h]);
    const std::int64_t found = trie_->find(tuple);
    require(found >= 0, "a search found a tuple that no item has");
    if (!visit(found, output[at + levels])) return;
  }
}

TargetRank SemanticIdsObjective::rank_of(std::int64_t target, std::span<const float> output,
                                         std::span<const std::int64_t> seen) const {
  constexpr ListPlace kNotFound{.group_rank = kUnranked};
  TargetRank rank{.unseen = kNotFound, .all = kNotFound};
  const std::optional<std::int64_t> known = codes_->find(target);
  if (!known) {
    rank.why = Unanswered::new_item;
    return rank;
  }
  const std::int64_t sought = trie_->find(codes_->tuple(*known));
  ListPlace unseen{.first = 1, .group_rank = 1}, all = unseen;
  each_tuple(output, [&](std::int64_t tuple, float) {
    const auto items = trie_->items(tuple);
    all.group = std::ssize(items);
    unseen.group = std::ranges::count_if(
        items, [&](std::int64_t item) { return item == target || !std::ranges::binary_search(seen, item); });
    if (tuple == sought) {
      rank = {.unseen = unseen, .all = all};
      return false;
    }
    for (ListPlace* const place : {&unseen, &all}) {
      place->first += place->group;
      place->group_rank += place->group > 0 ? 1 : 0;
    }
    return true;
  });
  return rank;
}

void SemanticIdsObjective::set_beam(std::int64_t beam) {
  config_.beam = std::min(beam, trie_->tuples());
  model_.set_beam(config_.beam);
}

std::vector<kernels::ScoredItem> SemanticIdsObjective::list(std::span<const float> output) const {
  std::vector<kernels::ScoredItem> items;
  each_tuple(output, [&](std::int64_t tuple, float score) {
    if (!std::isfinite(score)) throw NotFiniteError("a log-probability is NaN or infinite");
    for (const std::int64_t item : trie_->items(tuple)) items.push_back({.score = score, .id = item});
    return true;
  });
  return items;
}

std::unique_ptr<RunningMetrics> SemanticIdsObjective::running_metrics(std::int64_t /*window_samples*/) const {
  return std::make_unique<NoRunningMetrics>();
}

void SemanticIdsObjective::measure(const Tally& evaluation, const ListQuestion& question,
                                   EvaluationResult& result) const {
  measure_retrieval(ranked_targets(evaluation), config_.exclude_seen, question, result);
}

void SemanticIdsObjective::write_predictions(const Tally& evaluation, const Path& folder) const {
  write_ranks(ranked_targets(evaluation), config_.exclude_seen, folder);
}

}  // namespace hstu
