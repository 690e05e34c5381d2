// Task: what a configuration wants to be learnt from a dataset: the model, and what its samples are made of.
// Makes the model that `model.kind` names.
#pragma once

#include <memory>

#include "hstu/batching/options.h"
#include "hstu/dataset/dataset.h"
#include "hstu/model/model.h"
#include "hstu/options/options.h"

namespace hstu {

struct Task {
  std::unique_ptr<Model> model;
  DataOptions data;          // of the samples that train
  DataOptions evaluation;    // of those that are scored: their anchors alone, whatever training predicts
  bool has_baseline = true;  // false: the first task is not the dataset's label, which the baseline predicts
};

// Throws UsageError where the configuration and the dataset do not fit.
Task make_task(const RunOptions& options, const Dataset& dataset);

}  // namespace hstu
