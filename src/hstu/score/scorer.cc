#include "hstu/score/scorer.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/objective/ranking_objective.h"

namespace hstu {
namespace {

std::vector<std::int64_t> ids_of(const EmbeddingTable& table) {
  std::vector<std::int64_t> ids;
  ids.reserve(static_cast<std::size_t>(table.rows_alive()));
  for (const auto& place : table.places_by_id()) ids.push_back(place.id);
  return ids;
}

const RankingObjective& ranking_of(const Learner& learner) {
  const RankingObjective* const ranking = learner.objective->ranking();
  if (ranking == nullptr) fail_usage("a model of this kind does not score candidates");
  return *ranking;
}

}  // namespace

Scorer::Scorer(const RunOptions& options, const Checkpoint& checkpoint, const Dataset& dataset, Task task,
               bool row_stable)
    : pass_(options, checkpoint, dataset, std::move(task), row_stable),
      tasks_(ranking_of(pass_.learner()).tasks()),
      bad_ids_(OnBadId::count, pass_.learner().model->features()),
      trained_items_(ids_of(pass_.learner().tables[0])) {}

std::vector<float> Scorer::score(std::span<const Candidate> candidates) {
  const Tensor outputs = pass_.outputs(candidates);
  bad_ids_.add(pass_.batch().bad_ids);
  const RankingObjective& ranking = ranking_of(pass_.learner());
  std::vector<float> probabilities = ranking.probabilities(
      outputs, ranking.examples(pass_.batch()), pass_.learner().compute.stream, tasks_.size(), "request");
  const std::size_t items = pass_.built().candidate_item.size();
  require(probabilities.size() == items * tasks_.size(), "expected {} scores, found {}",
          items * tasks_.size(), probabilities.size());
  return probabilities;
}

bool Scorer::is_trained(std::int64_t item) const {
  return std::binary_search(trained_items_.begin(), trained_items_.end(), item);
}

}  // namespace hstu
