// What learns: a model, its embedding tables, and the optimizers that move both.
#pragma once

#include <memory>

#include "hstu/batching/bad_ids.h"
#include "hstu/embedding/table_set.h"
#include "hstu/model/model.h"
#include "hstu/optimizer/dense_optimizer.h"
#include "hstu/run/options.h"

namespace hstu {

struct Learner {
  Learner(const RunOptions& options, std::unique_ptr<Model> model);

  RunOptions options;
  std::unique_ptr<Model> model;
  TableSet tables;  // one a feature, in the order of Model::features()
  DenseOptimizer dense_optimizer;
  BadIds bad_ids;  // that training has seen
};

// The distinct ids of each feature in a batch, in the order of the tables; valid as long as the batch.
std::vector<std::span<const std::int64_t>> feature_ids(const Model& model, const Batch& batch);

// The rows of a batch as leaves of a tape, one variable a feature.
std::vector<Variable> leaves_of(std::vector<Tensor> rows);

}  // namespace hstu
