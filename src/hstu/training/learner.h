// What learns: the model, its embedding tables and the optimizers that move both.
#pragma once

#include "hstu/model/embeddings.h"
#include "hstu/model/ranker.h"
#include "hstu/optimizer/dense_optimizer.h"
#include "hstu/run/options.h"

namespace hstu {

struct Learner {
  // `options` with the sizes that the dataset's schema settles filled into `model_config` and `tables`.
  Learner(const RunOptions& options, const ModelConfig& model_config, const FeatureTables& tables);

  RunOptions options;
  Ranker model;
  Embeddings embeddings;
  DenseOptimizer dense_optimizer;
};

}  // namespace hstu
