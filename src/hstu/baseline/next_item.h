// Baselines of retrieval, which need no model: all items of a catalogue by popularity, by how often they
// followed the user's latest item (Markov, first order), or the user's latest item itself.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "hstu/base/choice.h"
#include "hstu/batching/holdout.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

enum class NextItemRule {
  popularity,  // by count descending, then id ascending: the order of popularity
  markov,      // by the count of pairs (latest item, item) descending, then popularity
  last,        // the latest item, then popularity
};
inline constexpr Choice<NextItemRule> kNextItemRules[] = {
    {"popularity", NextItemRule::popularity}, {"markov", NextItemRule::markov}, {"last", NextItemRule::last}};

inline constexpr std::int64_t kAllEvents = std::numeric_limits<std::int64_t>::max();

// Counts of items and of neighbouring pairs in the events that train: a model and its baselines know the
// same. Alphabet: V items of the catalogue.
class NextItemBaselines {
 public:
  // Of the events that `holdout` leaves to training, those count that a model reads or predicts: of the pools
  // of `samples`, and rankable ones; a pair begins with one of the pools. None counts from a user's first
  // event of `evaluated` on (positions of events to be predicted). `catalogue` (V): ids ascending; events of
  // other items count for nothing. 8 bytes for each pair. One parallel pass over the dataset; the result does
  // not depend on the number of threads. Dataset and samples must outlive it.
  NextItemBaselines(const Dataset& dataset, const Holdout& holdout, const SampleBuilder& samples,
                    std::span<const std::int64_t> evaluated, std::span<const std::int64_t> catalogue);

  // The rank of the item of each event at `positions` (n) among all items, from 1, without the items of the
  // latest `seen_events` events of the user's history, as `samples` has it, or of all earlier events.
  // kUnranked for one of these, and for an item that is not in the catalogue. The user's latest item is that
  // of its history.
  std::vector<std::int64_t> ranks(NextItemRule rule, std::span<const std::int64_t> positions,
                                  std::int64_t seen_events) const;

  std::span<const std::int64_t> items() const { return items_; }    // (V)
  std::span<const std::int64_t> counts() const { return counts_; }  // (V) of events

 private:
  static constexpr std::int32_t kUnknown = -1;
  struct Followers {
    std::span<const std::int32_t> items, counts;  // ascending items

    std::int32_t count(std::int32_t item) const;
  };
  struct Question;

  std::int32_t index_of(std::int64_t id) const;
  Followers followers(std::int32_t item) const;
  void count_events(const Holdout& holdout, std::span<const EventPlace> first);
  void count_pairs(std::vector<std::uint64_t> pairs);
  void sort_by_popularity();
  std::int64_t better(NextItemRule rule, const Question& question) const;

  const Dataset& dataset_;
  const SampleBuilder& samples_;
  std::vector<std::int64_t> items_, counts_;  // (V)
  std::vector<std::int32_t> place_;           // (V) in the order of popularity, from 0
  std::vector<std::int64_t> begin_;           // (V + 1) the items that followed an item
  std::vector<std::int32_t> follower_, times_;
};

}  // namespace hstu
