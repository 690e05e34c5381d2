// Steps on batches that a test chooses.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "hstu/experiment/experiment.h"
#include "hstu/objective/ranking_tally.h"
#include "hstu/step/step.h"

namespace hstu::testing {

inline Batch batch_of(const Experiment& experiment, std::span<const std::int64_t> positions,
                      std::int64_t supervised) {
  Batch batch;
  LayoutScratch scratch;
  experiment.learner().model->layout().lay_out(experiment.samples().build(positions), scratch, batch);
  batch.supervised = supervised;
  return batch;
}

// One step on this rank's parts of a global batch of `supervised` samples.
inline StepResult step_on_parts(Experiment& experiment,
                                const std::vector<std::span<const std::int64_t>>& parts,
                                std::int64_t supervised, std::int64_t step = 0,
                                Communicator& comm = one_rank()) {
  std::size_t next = 0;
  std::array<Batch, 2> batches;  // a part is valid until the call after the next
  const StepContext context{.step = step,
                            .draws = Draws(experiment.options().seed, step),
                            .compute = experiment.learner().compute,
                            .comm = comm};
  PartsOf source([&]() -> const Batch* {
    if (next == parts.size()) return nullptr;
    Batch& batch = batches[next % 2];
    batch = batch_of(experiment, parts[next++], supervised);
    batch.copy_to(context.compute);
    return &batch;
  });
  return begin_step(experiment.learner(), source, context).finish();
}

// What the step predicted, of its first task.
inline const RankingSamples& predictions_of(const StepResult& result) {
  return as_ranking(*result.predictions).samples().front();
}

inline StepResult step_on(Experiment& experiment, std::span<const std::int64_t> positions,
                          std::int64_t step = 0) {
  return step_on_parts(experiment, {positions}, static_cast<std::int64_t>(positions.size()), step);
}

}  // namespace hstu::testing
