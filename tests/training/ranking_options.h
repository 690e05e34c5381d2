// The second model in place of the first.
#pragma once

#include "hstu/options/options.h"

namespace hstu::testing {

inline void use_ranking(RunOptions& options) {
  options.model_kind = ModelKind::ranking_gr;
  RankingGrConfig& model = options.ranking;
  model.embedding_dim = model.dim = 8;
  model.heads = 2;
  model.head_dim = 4;
  model.positions = 32;
  model.dropout = 0.1;
  model.head_hidden = {16};
  options.data.options.anchor_stride = options.data.options.history_length + 1;
}

}  // namespace hstu::testing
