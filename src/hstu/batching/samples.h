// Samples: the data of some anchors or requests. Alphabet: B samples, T history tokens in total, C candidates
// in total, I distinct items.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/attribute_of_items.h"
#include "hstu/batching/batch_draws.h"
#include "hstu/batching/catalogue_negatives.h"

namespace hstu {

struct Samples {
  std::int64_t count = 0;  // B
  BatchDraws draws;        // what a layout draws, by the samples' names
  // The anchors of the global batch that the samples are a part of; empty: they are all of it. Read while
  // they are built, with CatalogueDrawOptions::of_batch.
  std::span<const std::int64_t> batch;
  bool predicts_next_events = false;  // as DataOptions says

  // History of sample b: tokens [history_offsets[b], history_offsets[b + 1]), oldest first.
  std::vector<std::int64_t> history_offsets;  // (B + 1)
  std::vector<std::int32_t> history_item;     // (T) index into `items`
  std::vector<std::uint8_t> history_action;   // (T) action bits of the manifest, rankable bit cleared
  std::vector<std::int64_t> history_time;     // (T) seconds

  // (B) events of each history that are not here because their keys are known; empty: none.
  std::vector<std::int64_t> known;

  // With CatalogueDrawOptions: (T, own) index into `items`, of what is drawn for each token's next event;
  // (shared) of what is drawn for the global batch; the size V of the catalogue; null: not wanted.
  std::vector<std::int32_t> drawn_item, shared_item;
  std::int64_t catalogue_size = 0;
  const ItemFrequencies* frequencies = nullptr;
  const std::vector<CatalogueAttribute>* catalogue_attributes = nullptr;  // in the order of `attributes`

  // Candidates of sample b: [candidate_begin(b), candidate_begin(b + 1)), after one history. Those of an
  // anchor are its own item, then negatives.
  std::vector<std::int32_t> candidate_item;     // (C) index into `items`
  std::vector<std::int64_t> candidate_offsets;  // (B + 1), or empty: every sample has one candidate
  std::vector<std::int64_t> candidate_time;     // (B) seconds, the anchor's own time
  std::vector<float> label;                     // (B) 0 or 1, of the first candidate; 0 of the others
  std::vector<std::int64_t> user;               // (B) original user ids
  // (B) flat position of the anchor in the dataset: the sample's name. Where negatives are samples of their
  // own, they follow the anchor's and have its name.
  std::vector<std::int64_t> position;

  // Filled for models that predict at several events of a sample (EventOptions). Event e of sample b has
  // index history_offsets[b] + candidate_begin(b) + e: the history, then the candidates. N = T + C events.
  std::vector<std::int64_t> event_action;    // (N) ids
  std::vector<std::int64_t> event_label;     // (N)
  std::vector<std::uint8_t> event_rankable;  // (N) 1: the event may be an example
  std::vector<std::int32_t> candidates;      // (B) the last events that are scored

  // (N) of each event, indexed as above, if DataOptions::weighted; else empty. Further candidates have the
  // weight of the first: an anchor's negatives that of its event.
  std::vector<float> event_weight;

  // Every distinct item once, so that values that depend only on the item are computed once.
  std::vector<std::int64_t> items;                    // (I) original ids, ascending
  std::vector<std::vector<std::int64_t>> attributes;  // [attribute](I) ids, in the order of the configuration
  std::vector<std::vector<std::int64_t>> context;     // [feature](B) ids, already hashed into their table

  std::int64_t known_of(std::size_t sample) const { return known.empty() ? 0 : known[sample]; }
  std::int64_t candidate_begin(std::size_t sample) const {
    return candidate_offsets.empty() ? static_cast<std::int64_t>(sample) : candidate_offsets[sample];
  }
  std::int64_t candidates_of(std::size_t sample) const {
    return candidate_begin(sample + 1) - candidate_begin(sample);
  }
  // The first event of sample b among all.
  std::size_t event_begin(std::size_t sample) const {
    return static_cast<std::size_t>(history_offsets[sample] + candidate_begin(sample));
  }
  std::int64_t events_of(std::size_t sample) const {
    return history_offsets[sample + 1] - history_offsets[sample] + candidates_of(sample);
  }
};

}  // namespace hstu
