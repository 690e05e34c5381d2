#include "hstu/training/experiment.h"

#include <utility>

namespace hstu {

Experiment::Experiment(const RunOptions& options)
    : dataset_(options.data.path),
      task_(make_task(options, dataset_)),
      anchors_(find_anchors(dataset_, options.data.options, options.evaluation.holdout)),
      samples_(dataset_, task_.data),
      evaluation_samples_(dataset_, task_.evaluation),
      device_(choose_device(options)),
      learner_(options, std::move(task_.model), open_device(device_.device)) {
  check_consistency(options);
}

BatchSchedule training_schedule(const RunOptions& options, const AnchorList& anchors, BatchCursor start) {
  ScheduleOptions schedule;
  schedule.batch_size = options.training.batch_size;
  schedule.drop_last = options.training.drop_last;
  schedule.epochs = options.training.epochs;
  schedule.first_window = options.training.first_window;
  schedule.windows = options.training.windows;
  schedule.shuffle_fraction = options.data.shuffle_fraction;
  schedule.seed = options.seed;
  return {anchors, schedule, start};
}

BatchSchedule Experiment::schedule(BatchCursor start) const {
  return training_schedule(options(), anchors_.training, start);
}

std::unique_ptr<Loader> training_loader(Experiment& experiment, BatchCursor start, Communicator& comm) {
  const RunOptions& options = experiment.options();
  Learner& learner = experiment.learner();
  return std::make_unique<Loader>(experiment.samples(), learner.model->layout(), experiment.schedule(start),
                                  LoaderOptions{.workers = static_cast<int>(options.data.workers),
                                                .ready = training_batches_ready(options),
                                                .part_tokens = options.training.micro_batch_tokens,
                                                .rank = comm.rank(),
                                                .ranks = comm.size(),
                                                .compute = learner.compute.stream});
}

std::int64_t Experiment::train_samples() const {
  return options().training.epochs * schedule({}).samples_per_epoch();
}

}  // namespace hstu
