// Runs of models that retrieve, on a log of walks from item to item.
#pragma once

#include "support/kind_options.h"
#include "training/walk_run.h"

namespace hstu::testing {

class RetrievalRun : public WalkRun {
 protected:
  RetrievalRun() {
    RetrievalConfig& model = retrieval_of(options_);
    model.embedding_dim = 32;
    model.heads = 2;
    model.dropout = 0.1;
    options_.dense = {.learning_rate = 3e-3, .max_gradient_norm = 0, .config = {.beta2 = 0.98}};
    options_.sparse = {
        .kind = RowOptimizerKind::adamw, .learning_rate = 3e-3, .beta2 = 0.98, .weight_decay = 0};
    TableSection& item = options_.tables.by_name["item"];
    item.initial = {.kind = InitialKind::truncated_normal, .deviation = 0.02};
  }

  // Items have an attribute, and vectors of another width by their own id; tokens have actions.
  void give_attributes() {
    write_walks(folder_ / "attributes", 0.95, true);
    options_.data.path = folder_ / "attributes";
    options_.features.attributes = {{.name = "number"}, {.name = "given", .key = "item"}};
    options_.tables.by_name["given"].width = 6;
    retrieval_of(options_).actions = true;
  }
};

}  // namespace hstu::testing
