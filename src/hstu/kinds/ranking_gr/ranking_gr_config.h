// Sizes and switches of the ranking model of NVIDIA's recsys-examples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/choice.h"
#include "hstu/kernels/activation.h"
#include "hstu/model/recompute.h"

namespace hstu {

// What the head predicts of an item: several independent yes-or-no tasks, or one class out of several.
enum class RankingHead { multi_task, multi_class };
inline constexpr Choice<RankingHead> kRankingHeads[] = {
    {"multi_task", RankingHead::multi_task},
    {"multi_class", RankingHead::multi_class},
};

struct RankingGrConfig {
  std::int64_t embedding_dim = 64;  // E: width of the embedding tables
  std::int64_t dim = 64;            // D: width of the sequence model
  std::int64_t layers = 2;
  std::int64_t heads = 2;      // H
  std::int64_t head_dim = 32;  // width of a head's queries, keys and values
  bool preprocessor_mlp =
      true;  // E -> D -> D with ReLU, one for items and actions, one for contextual features
  std::int64_t positions = 8192;       // rows of the position table
  std::int64_t attention_divisor = 0;  // of the attention; 0: max_sequence
  double dropout = 0.2;                // of the tokens, and in each layer after the gate
  double norm_epsilon = 1e-5;          // of the layers' norms
  bool residual = true;                // of the layers
  Recompute recompute = {};            // of the layers
  bool causal = true;                  // false: history sees later history
  bool contextual_mask = false;        // contextual tokens see all history; false: they are its first tokens
  bool allow_seen_labels = false;      // masks under which an item may see its own action
  std::int64_t candidates =
      0;  // labelled items, the last n of a sequence, apart from each other; 0: every item
  std::int64_t target_group = 1;  // tokens (not items) of candidates that see each other
  std::vector<std::int64_t> head_hidden = {512};
  kernels::Activation head_activation = kernels::Activation::relu;

  bool actions = true;           // a token of the action follows each item
  std::string action_column;     // context column of action ids; "": the event's action bits
  std::int64_t action_rows = 0;  // of the actions' table; 0: as many as the dataset's ids ask for
  RankingHead head = RankingHead::multi_task;
  std::vector<std::string> labels;            // tasks or classes; empty: the dataset's label, one task
  std::string label_column;                   // context column of labels; "": `labels` are actions
  std::vector<std::string> positive_classes;  // multi_class: their joint probability is the run's metric

  // Filled from the data and feature configuration.
  std::int64_t context = 0;       // C: contextual tokens
  std::int64_t max_sequence = 0;  // tokens of a sequence at most

  std::int64_t tokens_of_event() const { return actions ? 2 : 1; }
};

}  // namespace hstu
