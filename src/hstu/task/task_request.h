// What a configuration says of a task, whatever kind of model it is for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/batching/options.h"

namespace hstu {

class KindOptions;

// An item attribute with an embedding.
struct AttributeSection {
  std::string name;
  std::int64_t rows = 0;
  std::string key = {};  // of batching/attribute_of_items.h; "": the name

  const std::string& source() const { return key.empty() ? name : key; }
};

// [features]
struct FeaturesSection {
  std::int64_t item_rows = 0;
  std::vector<std::string> actions;  // input of the action encoder; empty: every action of the dataset
  std::vector<AttributeSection> attributes;
  std::vector<ContextualFeature> context;
};

// Refers to the parts of a run's options: valid as long as those.
struct TaskRequest {
  std::uint64_t seed;
  const FeaturesSection& features;
  const DataOptions& data;
  const KindOptions& model;
  const NegativeOptions& evaluation_negatives;  // those of training are in `data`
};

}  // namespace hstu
