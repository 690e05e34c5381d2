#include "hstu/objective/retrieval_measures.h"

#include <map>
#include <string>
#include <vector>

#include "hstu/metrics/item_groups.h"
#include "hstu/metrics/rank_metrics.h"

namespace hstu {

void measure_retrieval(const RankedTargets& targets, const ListQuestion& question, EvaluationResult& result) {
  result.model = rank_metrics(targets.rank, question.cutoffs);
  std::map<std::string, std::vector<std::int64_t>> parts;
  for (std::size_t i = 0; i < targets.rank.size(); ++i)
    parts[targets.tied[i] != 0 ? "tied" : "not_tied"].push_back(targets.rank[i]);
  if (!question.item_counts.empty()) {
    const ItemGroups groups(question.items, question.item_counts);
    for (std::size_t i = 0; i < targets.rank.size(); ++i)
      parts[word_of(kItemGroups, groups.of(targets.target[i]))].push_back(targets.rank[i]);
  }
  for (const auto& [name, ranks] : parts) result.parts[name] = rank_metrics(ranks, question.cutoffs);
}

}  // namespace hstu
