// What a kind of model is told for a configuration to start from (starting/starting_config.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/files.h"

namespace hstu {

// Sizes that suit the number of samples of a dataset.
struct Proposal {
  std::int64_t dim = 0, layers = 0, heads = 0, hidden = 0;
  double dropout = 0;                       // of the model's input
  std::int64_t history = 0;                 // events, at most
  std::int64_t contextual_tokens = 0;       // of the features that the configuration has
  std::vector<std::string> actions = {};    // of the dataset, its label first
  bool only_positives = false;              // negatives are drawn beside the sample's event
  std::int64_t items = 0;                   // of the dataset
  bool has_times = true;                    // false: its times are an order
  Path codes = {};                          // of its items, for kinds that have codes; "": none are named
  std::vector<std::int64_t> item_ids = {};  // of the dataset, ascending, where codes are named
  double repeated = 0;  // the share of the dataset's events whose user had the item before
};

}  // namespace hstu
