// The memory of the evaluations of a run.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/device/dry_memory_pool.h"
#include "hstu/experiment/task_data.h"

namespace hstu {

// Bytes in the memory of the device that computes.
struct EvaluationPlan {
  std::int64_t samples = 0, tokens = 0;  // of the largest part; 0: nothing is evaluated
  std::int64_t activations = 0;          // outputs_memory() of it
  std::int64_t catalogue = 0;            // the items that vectors are compared with
  std::int64_t batches = 0;              // that its own loader has, beside training's
  std::int64_t examples = 0;             // what is known of all examples, on processors, about
  std::int64_t baselines = 0;            // before the first batch is scored, on processors, at most

  // In the memory that the activations of training's steps leave; and beside it.
  std::int64_t passes() const { return activations + catalogue; }
  std::int64_t beside() const { return batches + examples; }
};

// The samples of the run's evaluations: those that are held out, or of the largest window that is scored
// before it is trained (evaluation.next_window).
std::vector<std::int64_t> evaluated_positions(const RunOptions& options, const Anchors& anchors);

// Of an evaluation of the samples at `positions`: makes a dry forward pass of the largest part of its first
// million samples. `data`: of the options, its model in their precision.
EvaluationPlan plan_evaluation(const RunOptions& options, const TaskData& data,
                               const std::vector<std::int64_t>& positions, const DryDevice& device,
                               int ranks);

}  // namespace hstu
