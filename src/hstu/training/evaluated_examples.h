// The examples of an evaluation, one after another: each held-out event, and the negatives drawn for it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/baseline/item_baselines.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

struct EvaluatedExamples {
  std::vector<std::int64_t> position, item;  // (n) the event of the sample, and what is ranked
  std::vector<std::uint8_t> is_own;          // (n) 1: the item is the event's own; 0: a negative

  std::int64_t size() const { return static_cast<std::int64_t>(position.size()); }
  RankedItems ranked() const { return {position, item}; }
};

// In the order in which the samples at `positions` are scored. `seed`: of the run.
EvaluatedExamples evaluated_examples(const Dataset& dataset, const SampleBuilder& samples,
                                     std::span<const std::int64_t> positions, std::uint64_t seed);

}  // namespace hstu
