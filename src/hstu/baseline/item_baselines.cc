#include "hstu/baseline/item_baselines.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/batching/training_positives.h"

namespace hstu {
namespace {

constexpr std::int64_t kPairBlockEvents = std::int64_t{1} << 18;

using Pair = std::pair<std::int64_t, std::int64_t>;  // an item, and the one that follows
struct HashOfPair {
  std::size_t operator()(const Pair& pair) const {
    return mix64(mix64(static_cast<std::uint64_t>(pair.first)) ^ static_cast<std::uint64_t>(pair.second));
  }
};
using PairCounts = std::unordered_map<Pair, std::int64_t, HashOfPair>;

// The latest positive of the history of the anchor at `position`; -1: there is none.
std::int64_t positive_before(const SampleBuilder& samples, const Positives& positives, std::int64_t position,
                             SampleScratch& scratch) {
  const auto history = samples.history_of(position, scratch);
  const auto latest =
      std::find_if(history.rbegin(), history.rend(), [&](std::int64_t p) { return positives.contains(p); });
  return latest == history.rend() ? -1 : *latest;
}

// Counts the pairs that `counts` has.
void count_pairs(const Dataset& dataset, const Holdout& holdout, PairCounts& counts) {
  parallel_user_blocks(user_blocks(dataset, kPairBlockEvents), [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t u = first; u < end; ++u) {
      std::int64_t before = -1;
      each_training_positive(dataset, holdout, u, [&](std::int64_t p) {
        if (before >= 0) {
          const auto found = counts.find({dataset.item()[before], dataset.item()[p]});
          if (found != counts.end()) std::atomic_ref(found->second).fetch_add(1, std::memory_order_relaxed);
        }
        before = p;
      });
    }
  });
}

}  // namespace

std::vector<double> score_popularity(const TrainingItems& items, const RankedItems& examples) {
  std::vector<double> scores;
  scores.reserve(examples.item.size());
  for (const std::int64_t item : examples.item)
    scores.push_back(static_cast<double>(items.positives_of(item)));
  return scores;
}

std::vector<double> score_co_occurrence(const Dataset& dataset, const Holdout& holdout,
                                        const SampleBuilder& samples, const TrainingItems& items,
                                        const RankedItems& examples) {
  require(examples.position.size() == examples.item.size(), "expected {} items, found {}",
          examples.position.size(), examples.item.size());
  const Positives positives(dataset);
  SampleScratch scratch = samples.scratch();
  std::vector<std::int64_t> before;  // of each example; those of an anchor are together
  before.reserve(examples.item.size());
  PairCounts counts;
  for (std::size_t i = 0; i < examples.item.size(); ++i) {
    const bool same = i > 0 && examples.position[i] == examples.position[i - 1];
    before.push_back(same ? before.back()
                          : positive_before(samples, positives, examples.position[i], scratch));
    if (before.back() >= 0) counts.try_emplace({dataset.item()[before.back()], examples.item[i]}, 0);
  }
  count_pairs(dataset, holdout, counts);

  std::vector<double> scores = score_popularity(items, examples);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] /= static_cast<double>(items.positives() + 1);  // below 1: it decides between equal counts
    if (before[i] >= 0)
      scores[i] += static_cast<double>(counts.at({dataset.item()[before[i]], examples.item[i]}));
  }
  return scores;
}

}  // namespace hstu
