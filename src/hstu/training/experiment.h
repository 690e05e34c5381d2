// Everything a configuration makes: data, model, optimizers. Training and evaluation share it.
#pragma once

#include <cstdint>
#include <memory>

#include "hstu/batching/anchors.h"
#include "hstu/batching/batch_builder.h"
#include "hstu/batching/schedule.h"
#include "hstu/dataset/dataset.h"
#include "hstu/model/embeddings.h"
#include "hstu/model/ranker.h"
#include "hstu/optimizer/dense_optimizer.h"
#include "hstu/training/options.h"

namespace hstu {

class Experiment {
 public:
  // Opens the dataset, finds the anchors and makes the model. Throws UsageError where the configuration and
  // the dataset do not fit.
  explicit Experiment(const RunOptions& options);

  const RunOptions& options() const { return options_; }
  const Dataset& dataset() const { return dataset_; }
  const Anchors& anchors() const { return anchors_; }
  const BatchBuilder& batches() const { return batches_; }
  const Ranker& model() const { return model_; }
  Embeddings& embeddings() { return embeddings_; }
  const Embeddings& embeddings() const { return embeddings_; }
  DenseOptimizer& dense_optimizer() { return dense_optimizer_; }
  const DenseOptimizer& dense_optimizer() const { return dense_optimizer_; }

  // The batches of training from `start` on.
  BatchSchedule schedule(BatchCursor start) const;

 private:
  RunOptions options_;
  Dataset dataset_;
  Anchors anchors_;
  FeatureTables features_;
  DataOptions data_options_;
  BatchBuilder batches_;
  Ranker model_;
  Embeddings embeddings_;
  DenseOptimizer dense_optimizer_;
};

}  // namespace hstu
