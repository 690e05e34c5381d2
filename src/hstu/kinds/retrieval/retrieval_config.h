// Sizes and switches of the retrieval model.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/model/sequence_presets.h"
#include "hstu/objective/item_vectors.h"
#include "hstu/objective/retrieval_objective.h"

namespace hstu {

struct RetrievalConfig {
  SequencePreset preset = SequencePreset::meta;
  std::int64_t embedding_dim = 64;  // E: width of the item table, of tokens and of vectors
  std::int64_t layers = 2;
  std::int64_t heads = 1;
  std::int64_t head_dim = 0;   // of HSTU's blocks; 0: embedding_dim / heads
  std::int64_t positions = 0;  // N of the presets; 0: history_length + 11
  double dropout = 0.2;
  bool position_bias = true, time_bias = true;  // of the preset meta
  bool unit_vectors = true;                     // of users and items, before their product
  bool actions = false;                         // tokens have a vector of the event's actions too
  SeenItems exclude_seen = SeenItems::history;
  RetrievalLoss loss;

  // Filled from the data configuration.
  std::int64_t history = 0;  // L
  // Filled from the features.
  std::vector<ItemFeature> attributes = {};  // of items, beside their ids
};

// The encoder of the configuration. UsageError for sizes that do not fit each other.
SequenceEncoderConfig encoder_config(const RetrievalConfig& config);

}  // namespace hstu
