// The forward and backward passes of a step, part by part.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "hstu/batching/bad_ids.h"
#include "hstu/embedding/row_gradients.h"
#include "hstu/embedding/row_visits.h"
#include "hstu/experiment/learner.h"
#include "hstu/run/results.h"
#include "hstu/step/predictions.h"
#include "hstu/step/step.h"
#include "hstu/step/step_context.h"
#include "hstu/step/step_sections.h"

namespace hstu {

inline constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

// The results of a step's parts, read only after all parts have been computed.
struct PartResults {
  explicit PartResults(TableSet& tables) : row_gradients(tables), visits(tables) {}
  RowGradients row_gradients;
  RowVisits visits;
  std::int64_t time = kNoTime;  // of the latest sample
  std::int64_t row_bytes = 0;   // of the rows, and of their gradients
  std::vector<Tensor> losses;   // (1) each
  std::vector<BadIdCount> bad_ids;
  std::vector<Scores> scores;
  std::int64_t exchanges = 0;  // between GPUs, begun before the last scores
};

// Looks up the rows of all parts of a global batch and computes their gradients, then sums them over the
// parts and the ranks; every term is already divided by its number of supervised examples. The parts are
// `first` (null: there is none) and those of next_part(). Dense gradients are in Parameter::gradient. Adds
// samples, tokens and FLOPs to `result`. Ends in kUpdateSection.
void compute_parts(Learner& learner, const StepContext& context, Batch* first, const NextPart& next_part,
                   const LaterPart* later, StepSections& sections, PartResults& parts, StepResult& result);

// Reports to the trace what the current stage reads and writes.
void moves(const StepContext& context, std::int64_t bytes);

}  // namespace hstu
