// Runs of models of semantic ids, on a log of walks from item to item.
#pragma once

#include <algorithm>

#include "hstu/codes/codes_file.h"
#include "support/kind_options.h"
#include "training/walk_run.h"

namespace hstu::testing {

// Two levels; the last two items share a tuple.
inline ItemCodes walk_codes() {
  ItemCodes codes{.sizes = {7, 7}, .items = {}, .codes = {}};
  for (std::int64_t i = 0; i < kWalkItems; ++i) {
    const auto at = static_cast<std::int32_t>(std::min(i, kWalkItems - 2));
    codes.items.push_back(walk_item(i));
    codes.codes.insert(codes.codes.end(), {at / 7, at % 7});
  }
  return codes;
}

class SemanticIdsRun : public WalkRun {
 protected:
  SemanticIdsRun() {
    std::filesystem::create_directories(folder_ / "codes");
    write_codes(folder_ / "codes", walk_codes(), "by hand");
    SemanticIdsConfig& model = semantic_ids_of(options_);
    model.codes = folder_ / "codes";
    model.dim = 32, model.layers = 2, model.heads = 2, model.head_dim = 16;
    model.dropout = 0.1;
    model.beam = 10;
    options_.dense = {.learning_rate = 3e-3, .max_gradient_norm = 0, .config = {}};
    options_.sparse = {.kind = RowOptimizerKind::adamw, .learning_rate = 3e-3, .weight_decay = 0};
  }
};

}  // namespace hstu::testing
