#include "hstu/objective/retrieval_measures.h"

#include <map>
#include <string>
#include <vector>

#include "hstu/metrics/item_groups.h"
#include "hstu/metrics/rank_metrics.h"

namespace hstu {

namespace {

std::vector<RankRange> ranges_of(const std::vector<TargetRank>& ranks) {
  std::vector<RankRange> ranges;
  ranges.reserve(ranks.size());
  for (const TargetRank& rank : ranks) ranges.push_back({rank.first, rank.group});
  return ranges;
}

// The ranks of groups among groups; empty: the model has no groups.
std::vector<std::int64_t> group_ranks(const std::vector<TargetRank>& ranks) {
  std::vector<std::int64_t> found;
  for (const TargetRank& rank : ranks)
    if (rank.group_rank > 0) found.push_back(rank.group_rank);
  return found;
}

}  // namespace

void measure_retrieval(const RankedTargets& targets, const ListQuestion& question, EvaluationResult& result) {
  struct Part {
    std::vector<TargetRank> ranks;
    std::vector<float> weights;  // empty: each 1
  };
  std::map<std::string, Part> parts;
  const auto add = [&](const std::string& name, std::size_t i) {
    parts[name].ranks.push_back(targets.rank[i]);
    if (question.weight) parts[name].weights.push_back(question.weight(targets.position[i]));
  };
  for (std::size_t i = 0; i < targets.rank.size(); ++i) {
    add("", i);
    add(targets.tied[i] != 0 ? "tied" : "not_tied", i);
  }
  if (!question.item_counts.empty()) {
    const ItemGroups groups(question.items, question.item_counts);
    for (std::size_t i = 0; i < targets.rank.size(); ++i)
      add(std::string(word_of(kItemGroups, groups.of(targets.target[i]))), i);
  }
  const Part all = parts[""];
  parts.erase("");
  result.model = rank_metrics(ranges_of(all.ranks), question.cutoffs, all.weights);
  for (const auto& [name, part] : parts)
    result.parts[name] = rank_metrics(ranges_of(part.ranks), question.cutoffs, part.weights);
  if (const std::vector<std::int64_t> tuples = group_ranks(all.ranks); !tuples.empty())
    result.parts["tuple"] = rank_metrics(tuples, question.cutoffs, all.weights);
}

}  // namespace hstu
