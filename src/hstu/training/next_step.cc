#include "hstu/training/next_step.h"

#include <utility>

#include "hstu/base/error.h"

namespace hstu {
namespace {

// The parts of the loader's next global batch.
class LoaderParts : public PartSource {
 public:
  LoaderParts(Loader& loader, Profiler& profiler, const Context& compute)
      : loader_(loader), profiler_(profiler), compute_(compute) {}

  const Batch* next() override {
    if (last_ != nullptr && last_->last_part) return nullptr;
    const TraceRange wait(compute_, kDataWait);
    last_ = loader_.next();
    require(last_ != nullptr, "the data ended before the step's global batch was complete");
    wait_ms_ += last_->data_wait_ms;
    profiler_.add(*last_);
    return &last_->batch;
  }
  const Batch* later(Wait wait) override {
    return wait == Wait::yes ? loader_.await_later() : loader_.later();
  }

  const LoadedBatch& last() const { return *last_; }
  double wait_ms() const { return wait_ms_; }

 private:
  Loader& loader_;
  Profiler& profiler_;
  const Context& compute_;
  LoadedBatch* last_ = nullptr;
  double wait_ms_ = 0;
};

}  // namespace

BegunStep begin_next(Experiment& experiment, Loader& loader, Profiler& profiler, AttentionMeter& attention,
                     StepContext context) {
  const std::int64_t step = context.step + 1;
  context.compute = attention.begin_step(step, profiler.begin_step(step, experiment.learner().compute));
  context.draws = Draws(experiment.options().seed, context.step);
  LoaderParts parts(loader, profiler, context.compute);
  Step begun = begin_step(experiment.learner(), parts, context);
  const LoadedBatch& last = parts.last();
  return {std::move(begun), last.next, last.window_end, last.division, parts.wait_ms()};
}

}  // namespace hstu
