// Task: what a configuration wants to be learnt from a dataset: the model, what is asked of its outputs, and
// what its samples are made of.
// A kind of model makes it (kind.h).
#pragma once

#include <memory>
#include <string>

#include "hstu/batching/options.h"
#include "hstu/model/model.h"
#include "hstu/objective/objective.h"

namespace hstu {

struct Task {
  std::unique_ptr<Model> model;
  std::unique_ptr<Objective> objective;
  DataOptions data;          // of the samples that train
  DataOptions evaluation;    // of those that are scored: their anchors alone, whatever training predicts
  bool has_baseline = true;  // false: the first task is not the dataset's label, which the baseline predicts
  std::string saves_memory = {};      // keys that take less memory for more time, for a sentence; "": none
  std::string no_requests = {};       // why requests cannot be scored; "": they can
  std::string note_on_requests = {};  // what a reader of their scores must know; "": nothing
};

}  // namespace hstu
