// Builds samples from the positions of anchors, and from requests that are no events.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hstu/batching/attribute_of_items.h"
#include "hstu/batching/candidate.h"
#include "hstu/batching/event_values.h"
#include "hstu/batching/features.h"
#include "hstu/batching/history.h"
#include "hstu/batching/item_numbers.h"
#include "hstu/batching/negatives.h"
#include "hstu/batching/options.h"
#include "hstu/batching/samples.h"
#include "hstu/batching/token_events.h"
#include "hstu/batching/training_items.h"
#include "hstu/dataset/anchor_list.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

// Scratch memory for building samples. Reused from batch to batch, so that eventually nothing is allocated;
// for one thread at a time.
struct SampleScratch {
  explicit SampleScratch(HistoryGatherer histories) : gatherer(std::move(histories)) {}
  HistoryGatherer gatherer;
  ItemNumbers numbers;
  std::vector<Candidate> candidates;            // (B) of anchors
  std::vector<std::int64_t> negatives;          // of all of them
  std::vector<std::int32_t> place;              // [number of an item] index into Samples::items
  std::vector<std::int32_t> drawn;              // [i of CatalogueDraws::item] number of the item, or kAbsent
  DistinctIds targets;                          // of the batch, with CatalogueDrawOptions::of_batch
  std::optional<CatalogueDraws> batch_targets;  // the same
};

// Samples are a pure function of (dataset, options, positions, draws). Thread-safe if each thread has its own
// scratch. The dataset must outlive it.
class SampleBuilder {
 public:
  // UsageError for names that the dataset does not have and for values out of range. `items`: of the training
  // part, from which negatives are drawn (options.negatives); requests need none. `catalogue`: ids ascending,
  // of options.catalogue, and of negatives that are all items: UsageError for more than options allow.
  SampleBuilder(const Dataset& dataset, const DataOptions& options,
                std::shared_ptr<const TrainingItems> items = nullptr,
                const std::vector<std::int64_t>& catalogue = {});

  // The samples of the anchors at `positions`, in their order, and of the negatives that samples.draws draws
  // for them: further candidates of an anchor's sample, or samples with its position behind it. A sample
  // contains nothing from its anchor's position or later, except the candidate itself: item, time, label,
  // context. Overwrites `samples` except its draws and its batch, and reuses its memory.
  void build(std::span<const std::int64_t> positions, Samples& samples, SampleScratch& scratch) const;
  // `batch`: Samples::batch.
  Samples build(std::span<const std::int64_t> positions, std::span<const std::int64_t> batch = {}) const;
  // The same for candidates of any origin: the sample of an anchor's Candidate is the anchor's sample.
  // Samples::position has their names. The candidates of a sample are `item`, then `others`.
  void build(std::span<const Candidate> candidates, Samples& samples, SampleScratch& scratch) const;
  // What samples have of the events of a request's history: equal ones are equal tokens.
  TokenEvents tokens_of(const EventColumns& history) const;
  // The ids of a candidate's contexts.
  std::vector<std::int64_t> contexts_of(const Candidate& candidate) const;
  SampleScratch scratch() const {
    return SampleScratch(HistoryGatherer(dataset_.action(), dataset_.pool_counts(), rule_));
  }

  // The history of the anchor at `position`, as positions; valid until the next use of `scratch`.
  std::span<const std::int64_t> history_of(std::int64_t position, SampleScratch& scratch) const {
    return scratch.gatherer.gather(events_before(dataset_.user_at(position), position));
  }

  // With options.catalogue.frequencies: counts how often the samples of `training` have each item as a
  // target, which samples refer to (Samples::frequencies). A pass over all histories; before the first
  // build(), and not at the same time as one.
  void count_targets(const AnchorList& training);

  // Replaces `drawn` by the negatives of the anchor at `position`.
  void draw_negatives(const BatchDraws& draws, std::int64_t position, std::vector<std::int64_t>& drawn) const;
  bool draws_negatives() const { return data_.negatives.per_positive > 0; }
  std::int64_t most_negatives() const { return data_.negatives.per_positive; }  // of a positive

  // The examples of the samples at `positions`: their number if only candidates are scored, otherwise the
  // rankable ones among the events that are scored; and the negatives of positives, as if there were always
  // enough other items.
  std::int64_t examples(std::span<const std::int64_t> positions, SampleScratch& scratch) const;
  // An upper bound of the tokens of the sample at `position` (contextual, history, candidate), computed
  // without gathering its history.
  std::int64_t most_tokens(std::int64_t position) const;
  std::int64_t most_tokens(const Candidate& candidate) const;
  // Whether the items of a request have the same contextual features, so that they may share a history.
  bool shares_contexts() const { return !features_.depend_on_item(); }
  // That one more of Candidate::others adds to a sample.
  std::int64_t tokens_of_item() const { return events_.tokens(); }
  const HistoryRule& history_rule() const { return rule_; }
  // The maximum length of a history.
  std::int64_t longest_history() const { return rule_.longest; }
  // The maximum number of tokens of a sample: contextual, history, candidate.
  std::int64_t longest_sequence() const {
    return static_cast<std::int64_t>(features_.size()) + events_.tokens() * (rule_.longest + 1);
  }

 private:
  // The anchor at `position`, whose user is looked for at index `user` first.
  // Events of user `user` before the anchor at `position`, from which its history is taken.
  UserEvents events_before(std::int64_t user, std::int64_t position) const;
  Candidate anchor_at(std::int64_t position, std::int64_t& user) const;
  bool is_positive(std::int64_t position) const;
  static std::int64_t other_items(const std::vector<std::int64_t>& catalogue, std::int64_t most);
  bool share_histories() const { return data_.negatives_share_history && shares_contexts(); }
  void find_candidates(std::span<const std::int64_t> positions, const BatchDraws& draws,
                       SampleScratch& scratch) const;
  void add_candidates(std::span<const Candidate> candidates, Samples& samples) const;
  void add_histories(std::span<const Candidate> candidates, Samples& samples, SampleScratch& scratch) const;
  void number_items(const UserEvents& before, std::span<const std::int64_t> history, std::int32_t* numbers,
                    SampleScratch& scratch) const;
  void add_events(const Candidate& candidate, std::span<const std::int64_t> history, Samples& samples) const;
  void add_weights(const Candidate& candidate, std::span<const std::int64_t> history, Samples& samples) const;
  void draw_shared(Samples& samples, SampleScratch& scratch) const;
  // body(item) for each target of the anchor's sample.
  template <typename Body>
  void each_target(std::int64_t anchor, SampleScratch& scratch, const Body& body) const;
  void find_batch_targets(std::span<const std::int64_t> batch, SampleScratch& scratch) const;
  void draw_own(const CatalogueDraws& from, const Candidate& candidate, std::size_t tokens, Samples& samples,
                SampleScratch& scratch) const;
  void add_items(Samples& samples, SampleScratch& scratch) const;

  const Dataset& dataset_;
  DataOptions data_;
  HistoryRule rule_;
  ContextualFeatures features_;
  std::vector<AttributeOfItems> attributes_;
  std::vector<CatalogueAttribute> of_catalogue_;  // of each attribute, if they are wanted
  std::uint8_t label_bit_;
  EventValues events_;
  std::optional<NegativeSampler> negatives_;    // not of requests
  std::optional<CatalogueDraws> catalogue_;     // if anything is drawn from it
  std::optional<ItemFrequencies> frequencies_;  // of count_targets()
};

}  // namespace hstu
