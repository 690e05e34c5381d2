// StepContext: the arguments of a step other than the learner and its data. Passed explicitly, not global.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "hstu/base/progress_watch.h"
#include "hstu/comm/communicator.h"
#include "hstu/model/draws.h"
#include "hstu/objective/tally.h"
#include "hstu/tensor/context.h"

namespace hstu {

struct StepContext {
  std::int64_t step = 0;             // 0 is the first
  Draws draws;                       // of this step
  Context compute = host_context();  // stream, memory pool, trace
  Communicator& comm = one_rank();   // the ranks that share the global batch
  ProgressWatch* watch = nullptr;    // learns of each stage; null: none
  // Takes the predictions of this rank, and the step's figures are those of this rank too: the ranks share
  // both later. Null: finish() shares them.
  std::shared_ptr<Tally> unshared = {};
  // One rank: takes the step's predictions while a GPU computes the backward pass, so before the step can
  // fail.
  std::function<void(const Tally&)> on_predictions = {};
};

}  // namespace hstu
