// Runs of models that retrieve, on a log of walks from item to item.
#pragma once

#include <string>
#include <vector>

#include "support/kind_options.h"
#include "training/ranked_run.h"
#include "training/walks.h"

namespace hstu::testing {

class RetrievalRun : public RankedRun {
 protected:
  RetrievalRun() {
    write_walks(folder_ / "walks");
    options_.data.path = folder_ / "walks";
    options_.data.options.window_seconds = 0;
    options_.data.options.anchor_stride = 0;
    options_.data.options.min_history = 1;
    options_.features.context.clear();
    RetrievalConfig& model = retrieval_of(options_);
    model.embedding_dim = 32;
    model.heads = 2;
    model.dropout = 0.1;
    options_.training = {.batch_size = 32, .epochs = 3};
    options_.dense = {.learning_rate = 3e-3, .max_gradient_norm = 0, .config = {.beta2 = 0.98}};
    options_.sparse = {
        .kind = RowOptimizerKind::adamw, .learning_rate = 3e-3, .beta2 = 0.98, .weight_decay = 0};
    TableSection& item = options_.tables.by_name["item"];
    item.initial = {.kind = InitialKind::truncated_normal, .deviation = 0.02};
    options_.evaluation = {};
    options_.evaluation.holdout.split = LastSplit::valid;
    options_.evaluation.every_data_fraction = 1;
    options_.checkpoint = {.every_steps = 3, .every_seconds = 0, .keep = 0, .best = "ndcg@10"};
    options_.metrics.every_steps = 1;
  }

  // Items have an attribute, and vectors of another width by their own id; tokens have actions.
  void give_attributes() {
    write_walks(folder_ / "attributes", 0.95, true);
    options_.data.path = folder_ / "attributes";
    options_.features.attributes = {{.name = "number"}, {.name = "given", .key = "item"}};
    options_.tables.by_name["given"].width = 6;
    retrieval_of(options_).actions = true;
  }

  std::vector<double> losses(const std::string& name) const {
    std::vector<double> losses;
    for (const Json& line : log(name, "train")) losses.push_back(line.at("loss").get<double>());
    return losses;
  }
};

}  // namespace hstu::testing
