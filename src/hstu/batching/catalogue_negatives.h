// Negatives of positions that predict an item out of a catalogue, and the columns of a batch that losses over
// sampled items read (loss/sampled_softmax.h, loss/pooled_softmax.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/batching/batch_draws.h"

namespace hstu {

// Alphabet: R positions, K negatives of each, P items of a pool, I distinct items of the batch (item.ids).
inline constexpr std::string_view kSampledIndexColumn = "sampled.index";  // (R, 1 + K) i32 into item.ids: the
                                                                          // target, then its negatives
inline constexpr std::string_view kPoolIdsColumn = "pool.ids";            // (P) i64 ascending
inline constexpr std::string_view kPoolIndexColumn = "pool.index";        // (P) i32 into item.ids
inline constexpr std::string_view kPoolOccurrencesColumn =
    "pool.occurrences";                                             // (P) i32, in this part of the batch
inline constexpr std::string_view kPoolDrawsColumn = "pool.draws";  // (P) i32, in the whole batch
inline constexpr std::string_view kPoolFrequencyColumn = "pool.frequency";  // (P) f32, in training data

// Draws from a list of items, evenly and with replacement. Pure functions of the batch's draws and of names:
// the same on any number of ranks, and after a resume. Thread-safe.
class CatalogueDraws {
 public:
  // `items`: (V) distinct original ids, in an order that is the same on all ranks; at least one.
  explicit CatalogueDraws(std::vector<std::int64_t> items);

  std::int64_t size() const { return std::ssize(items_); }  // V
  std::int64_t item(std::int64_t i) const { return items_[static_cast<std::size_t>(i)]; }
  // The negatives of the position at `token` of the sample whose name is `sample` (Samples::position), each
  // as i of item(i): there are a hundred of each token of a batch, and few items.
  void draw_own(const BatchDraws& draws, std::int64_t sample, std::int64_t token,
                std::span<std::int64_t> drawn) const;
  // Items for all positions of a global batch.
  void draw_shared(const BatchDraws& draws, std::span<std::int64_t> drawn) const;

 private:
  std::vector<std::int64_t> items_;
};

// How often each item occurs where batches are taken from.
class ItemFrequencies {
 public:
  // ids (V) ascending, counts (V) not below 0.
  ItemFrequencies(std::vector<std::int64_t> ids, std::vector<std::int64_t> counts);

  double of(std::int64_t item) const;  // its share of all; 0 for an unknown item

 private:
  std::vector<std::int64_t> ids_, counts_;
  double total_ = 0;
};

// The items of a pool in a part of a batch.
struct PoolItems {
  std::vector<std::int64_t> ids;  // (P) ascending
  std::vector<std::int32_t> occurrences, draws;
  std::vector<float> frequency;  // (P) or empty
};
// `targets` of the part's positions; `others`: events that belong to the pool too, such as those of
// histories; `drawn`: from the catalogue. An item occurs as often as it is in targets and others.
// `frequencies` may be null.
PoolItems pool_items(std::span<const std::int64_t> targets, std::span<const std::int64_t> others,
                     std::span<const std::int64_t> drawn, const ItemFrequencies* frequencies);

// Adds the columns pool.*. `items`: (I) ascending, with all of the pool's among them.
void add_pool_columns(const PoolItems& pool, std::span<const std::int64_t> items, Batch& batch);
// Adds sampled.index: targets (R), negatives (R * K), all among `items` (I) ascending.
void add_sampled_index(std::span<const std::int64_t> targets, std::span<const std::int64_t> negatives,
                       std::span<const std::int64_t> items, Batch& batch);

}  // namespace hstu
