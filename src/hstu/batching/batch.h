// Batch: what one training or evaluation step reads. Alphabet: B samples, T history tokens in all, I distinct
// items.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <vector>

namespace hstu {

// Batches are made in memory that a std::pmr::memory_resource gives: the one place to ask for another kind.
using BatchMemory = std::pmr::memory_resource;
template <typename T>
using BatchVector = std::pmr::vector<T>;

struct Batch {
  explicit Batch(BatchMemory* memory = std::pmr::get_default_resource())
      : history_offsets(memory),
        history_item(memory),
        history_action(memory),
        history_time(memory),
        candidate_item(memory),
        candidate_time(memory),
        label(memory),
        user(memory),
        position(memory),
        items(memory),
        attributes(memory),
        context(memory) {}

  std::int64_t samples = 0;  // B

  // History of sample b: tokens [history_offsets[b], history_offsets[b + 1]), oldest first.
  BatchVector<std::int64_t> history_offsets;  // (B + 1)
  BatchVector<std::int32_t> history_item;     // (T) index into `items`
  BatchVector<std::uint8_t>
      history_action;                      // (T) action bits of the dataset's manifest, rankable bit cleared
  BatchVector<std::int64_t> history_time;  // (T) seconds

  BatchVector<std::int32_t> candidate_item;  // (B) index into `items`
  BatchVector<std::int64_t> candidate_time;  // (B) seconds, the anchor's own time
  BatchVector<float> label;                  // (B) 0 or 1
  BatchVector<std::int64_t> user;            // (B) original user ids
  BatchVector<std::int64_t> position;  // (B) flat position of the anchor in the dataset: the sample's name

  // Every distinct item of the batch once, so that what depends on the item alone is computed once.
  BatchVector<std::int64_t> items;                    // (I) original ids, ascending
  BatchVector<BatchVector<std::int64_t>> attributes;  // [attribute](I) ids, in the order of the configuration
  BatchVector<BatchVector<std::int64_t>>
      context;  // [contextual feature](B) ids, already hashed into their table
};

}  // namespace hstu
