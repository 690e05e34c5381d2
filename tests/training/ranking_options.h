// The second model in place of the first.
#pragma once

#include "support/kind_options.h"

namespace hstu::testing {

inline void use_ranking(RunOptions& options) {
  RankingGrConfig& model = ranking_gr_of(options);
  model.embedding_dim = model.dim = 8;
  model.heads = 2;
  model.head_dim = 4;
  model.positions = 32;
  model.dropout = 0.1;
  model.head_hidden = {16};
  options.data.options.anchor_stride = options.data.options.history_length + 1;
}

}  // namespace hstu::testing
