#include "hstu/training/next_step.h"

#include <utility>

#include "hstu/base/error.h"

namespace hstu {

BegunStep begin_next(Experiment& experiment, Loader& loader, Profiler& profiler, std::int64_t step,
                     Communicator& comm, std::function<void(const RankingSamples&)> on_predictions) {
  LoadedBatch* loaded = nullptr;  // the last part
  double wait_ms = 0;
  const Context compute = profiler.begin_step(step + 1, experiment.learner().compute);
  const auto next_part = [&]() -> Batch* {
    if (loaded != nullptr && loaded->last_part) return nullptr;
    const TraceRange wait(compute, kDataWait);
    loaded = loader.next();
    require(loaded != nullptr, "the data ended at step {} on rank {}", step, comm.rank());
    wait_ms += loaded->data_wait_ms;
    profiler.add(*loaded);
    return &loaded->batch;
  };
  const StepContext context{.step = step,
                            .draws = Draws(experiment.options().seed, step),
                            .compute = compute,
                            .comm = comm,
                            .on_predictions = std::move(on_predictions)};
  const LaterPart later = later_part(loader);
  QueuedStep queued = begin_step(experiment.learner(), context, next_part, &later);
  return {std::move(queued), loaded->next, loaded->window_end, loaded->division, wait_ms};
}

}  // namespace hstu
