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
  // Moves the model to the device of `compute`. The tables are where options.tables places them.
  Learner(const RunOptions& options, std::unique_ptr<Model> model, Context compute = host_context());

  RunOptions options;
  Context compute;
  std::unique_ptr<Model> model;
  TableSet tables;  // one per feature, in the order of Model::features()
  DenseOptimizer dense_optimizer;
  BadIds bad_ids;  // of training
};

// Selects the rows of a batch, whose copy must be on the device of the tables.
RowSelection select_rows(Learner& learner, const Batch& batch, RowAccess access);

// The selected rows as leaves of a tape on the device of `compute`, one variable per feature.
std::vector<Variable> leaves_of(const TableSet& tables, const RowSelection& selection,
                                const Context& compute);

}  // namespace hstu
