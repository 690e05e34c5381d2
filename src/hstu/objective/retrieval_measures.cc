#include "hstu/objective/retrieval_measures.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "hstu/metrics/item_groups.h"
#include "hstu/metrics/rank_metrics.h"

namespace hstu {
namespace {

std::vector<RankRange> ranges_of(const std::vector<ListPlace>& places) {
  std::vector<RankRange> ranges;
  ranges.reserve(places.size());
  for (const ListPlace& place : places) ranges.push_back({place.first, place.group});
  return ranges;
}

// The ranks of groups among groups; empty: the model has no groups.
std::vector<std::int64_t> group_ranks(const std::vector<ListPlace>& places) {
  std::vector<std::int64_t> found;
  for (const ListPlace& place : places) found.push_back(place.group_rank > 0 ? place.group_rank : kUnranked);
  if (std::ranges::none_of(places, [](const ListPlace& place) { return place.group_rank > 0; }))
    found.clear();
  return found;
}

void count_unanswered(const RankedTargets& targets, EvaluationResult& result) {
  for (const TargetRank& rank : targets.rank)
    if (rank.why != Unanswered::no) ++result.unanswered[std::string(word_of(kUnanswered, rank.why))];
}

}  // namespace

std::vector<ListPlace> places_in_lists(const RankedTargets& targets, SeenItems left_out) {
  std::vector<ListPlace> places;
  places.reserve(targets.rank.size());
  for (std::size_t i = 0; i < targets.rank.size(); ++i) {
    const TargetRank& rank = targets.rank[i];
    if (left_out == SeenItems::none)
      places.push_back(rank.all);
    else
      places.push_back(targets.repeated[i] != 0 ? ListPlace{} : rank.unseen);
  }
  return places;
}

void measure_retrieval(const RankedTargets& targets, SeenItems left_out, const ListQuestion& question,
                       EvaluationResult& result) {
  struct Part {
    std::vector<ListPlace> places;
    std::vector<float> weights;  // empty: each 1
  };
  std::map<std::string, Part> parts;
  const auto add = [&](const std::string& name, std::size_t i, const ListPlace& place) {
    parts[name].places.push_back(place);
    if (question.weight) parts[name].weights.push_back(question.weight(targets.position[i]));
  };
  const std::vector<ListPlace> places = places_in_lists(targets, left_out),
                               with = places_in_lists(targets, SeenItems::none),
                               without = places_in_lists(targets, SeenItems::history);
  for (std::size_t i = 0; i < places.size(); ++i) {
    add("", i, places[i]);
    add(targets.tied[i] != 0 ? "tied" : "not_tied", i, places[i]);
    add(targets.repeated[i] != 0 ? "repeated" : "new", i, places[i]);
    add("with_seen", i, with[i]);
    add("without_seen", i, without[i]);
  }
  if (!question.item_counts.empty()) {
    const ItemGroups groups(question.items, question.item_counts);
    for (std::size_t i = 0; i < places.size(); ++i)
      add(std::string(word_of(kItemGroups, groups.of(targets.target[i]))), i, places[i]);
  }
  const Part all = parts[""];
  parts.erase("");
  result.model = rank_metrics(ranges_of(all.places), question.cutoffs, all.weights);
  for (const auto& [name, part] : parts)
    result.parts[name] = rank_metrics(ranges_of(part.places), question.cutoffs, part.weights);
  if (const std::vector<std::int64_t> tuples = group_ranks(all.places); !tuples.empty())
    result.parts["tuple"] = rank_metrics(tuples, question.cutoffs, all.weights);
  count_unanswered(targets, result);
}

}  // namespace hstu
