// A model, its embedding tables, and the optimizers that update both.
#pragma once

#include <memory>

#include "hstu/batching/bad_ids.h"
#include "hstu/embedding/table_set.h"
#include "hstu/model/model.h"
#include "hstu/optimizer/dense_optimizer.h"
#include "hstu/run/options.h"

namespace hstu {

struct Learner {
  // Moves the model to the device of `compute`. Rows of tables remain on the host.
  Learner(const RunOptions& options, std::unique_ptr<Model> model, Context compute = host_context());

  RunOptions options;
  Context compute;
  std::unique_ptr<Model> model;
  TableSet tables;  // one per feature, in the order of Model::features()
  DenseOptimizer dense_optimizer;
  BadIds bad_ids;  // of training
};

// The distinct ids of each feature in a batch, in the order of the tables; views into the batch.
std::vector<std::span<const std::int64_t>> feature_ids(const Model& model, const Batch& batch);

// The rows of a batch as leaves of a tape on the device of `compute`, one variable per feature.
std::vector<Variable> leaves_of(std::vector<Tensor> rows, const Context& compute);

}  // namespace hstu
