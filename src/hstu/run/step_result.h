// The results of a training step, as plain values for logs and programs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "hstu/balance/partition.h"
#include "hstu/model/layer_flops.h"
#include "hstu/objective/tally.h"

namespace hstu {

// Time of a step by section: of the device's work on a GPU, between marks on its stream.
struct StageTimes {
  double lookup_ms = 0;                    // of table rows; the copy of the batch
  double forward_ms = 0, backward_ms = 0;  // backward: and the gradients of rows to the host
  double update_ms = 0;                    // sums over ranks, checks, clipping, both optimizers, predictions

  StageTimes& operator+=(const StageTimes& other) {
    lookup_ms += other.lookup_ms;
    forward_ms += other.forward_ms;
    backward_ms += other.backward_ms;
    update_ms += other.update_ms;
    return *this;
  }
};

struct StepResult {
  double loss = 0;           // of the global batch: mean cross entropy times model.loss_weight
  double gradient_norm = 0;  // of the dense parameters, before clipping
  double lr_dense = 0, lr_sparse = 0;
  std::int64_t samples = 0;          // of the global batch, and so are the next two
  std::int64_t tokens = 0;           // of the sequences: context, history, candidate
  StackFlops flops;                  // zeros: the model does not count them
  DivisionFigures division;          // of the global batch among the ranks, by rank 0; one rank: empty
  std::int64_t memory_peak = 0;      // bytes: the most that the passes' pool has handed out since it was made
  std::optional<StageTimes> stages;  // of a step that was timed
  std::shared_ptr<const Tally> predictions;  // of the global batch, made before the update
};

}  // namespace hstu
