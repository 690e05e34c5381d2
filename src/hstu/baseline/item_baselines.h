// Baselines of ranked items: what is popular, and what follows the user's latest item most often.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/holdout.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/batching/training_items.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

// Examples: an anchor's event and an item, its own or a negative.
struct RankedItems {
  std::span<const std::int64_t> position, item;  // (n) each
};

// (n) positives of each example's item in the training part.
std::vector<double> score_popularity(const TrainingItems& items, const RankedItems& examples);

// (n) how often the example's item was the next positive of a user after the item of the latest positive of
// the anchor's history, as `samples` has it, where both events belong to the training part; equal counts in
// the order of popularity. One parallel pass over the dataset; the result does not depend on the number of
// threads.
std::vector<double> score_co_occurrence(const Dataset& dataset, const Holdout& holdout,
                                        const SampleBuilder& samples, const TrainingItems& items,
                                        const RankedItems& examples);

}  // namespace hstu
