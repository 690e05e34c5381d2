// Runs of models of semantic ids, on a log of walks from item to item.
#pragma once

#include <string>
#include <vector>

#include "hstu/codes/codes_file.h"
#include "support/kind_options.h"
#include "training/ranked_run.h"
#include "training/walks.h"

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

class SemanticIdsRun : public RankedRun {
 protected:
  SemanticIdsRun() {
    write_walks(folder_ / "walks");
    std::filesystem::create_directories(folder_ / "codes");
    write_codes(folder_ / "codes", walk_codes(), "by hand");
    options_.data.path = folder_ / "walks";
    options_.data.options.window_seconds = 0;
    options_.data.options.anchor_stride = 0;
    options_.data.options.min_history = 1;
    options_.features.context.clear();
    SemanticIdsConfig& model = semantic_ids_of(options_);
    model.codes = folder_ / "codes";
    model.dim = 32, model.layers = 2, model.heads = 2, model.head_dim = 16;
    model.dropout = 0.1;
    model.beam = 10;
    options_.training = {.batch_size = 32, .epochs = 3};
    options_.dense = {.learning_rate = 3e-3, .max_gradient_norm = 0, .config = {}};
    options_.sparse = {.kind = RowOptimizerKind::adamw, .learning_rate = 3e-3, .weight_decay = 0};
    options_.evaluation = {};
    options_.evaluation.holdout.split = LastSplit::valid;
    options_.evaluation.every_data_fraction = 1;
    options_.checkpoint = {.every_steps = 3, .every_seconds = 0, .keep = 0, .best = "ndcg@10"};
    options_.metrics.every_steps = 1;
  }

  std::vector<double> losses(const std::string& name) const {
    std::vector<double> losses;
    for (const Json& line : log(name, "train")) losses.push_back(line.at("loss").get<double>());
    return losses;
  }
};

}  // namespace hstu::testing
