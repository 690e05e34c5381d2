#include "hstu/experiment/experiment.h"

#include <algorithm>
#include <utility>

#include "hstu/experiment/division.h"
#include "hstu/experiment/rank_device.h"
#include "hstu/experiment/routes.h"
#include "hstu/options/table_options.h"

namespace hstu {

Experiment::Experiment(const RunOptions& options, Communicator& comm)
    : Experiment(options, std::make_unique<TaskData>(options), comm) {}

Experiment::Experiment(const RunOptions& options, std::unique_ptr<TaskData> data, Communicator& comm,
                       std::unique_ptr<Learner> learner)
    : data_(std::move(data)), device_(choose_device(options, comm)), learner_(std::move(learner)) {
  if (!learner_)
    learner_ =
        std::make_unique<Learner>(options, std::move(data_->task.model), std::move(data_->task.objective),
                                  open_device(device_.device, parse_bytes(options.device_memory)), comm);
  check_consistency(options);
  learner_->open_catalogues(data_->catalogue, dataset());
  learner_->event_times = &dataset().time();
  for (std::size_t t = 0; t < learner_->tables.size(); ++t) {
    const std::string& column = learner_->tables[t].config().limits.score_column;
    learner_->scores.push_back(column.empty() ? nullptr : &dataset().context(column));
  }
}

void Experiment::take_known_items() {
  if (learner_->catalogues.empty()) return;
  data_->catalogue = learner_->known_items(std::move(data_->catalogue), false);
  learner_->open_catalogues(data_->catalogue, dataset());
}

BatchSchedule training_schedule(const RunOptions& options, const Anchors& anchors, BatchCursor start) {
  ScheduleOptions schedule;
  schedule.batch_size = options.training.samples_of_step();
  schedule.drop_last = options.training.drop_last;
  schedule.epochs = options.training.epochs;
  schedule.first_window = options.training.first_window;
  schedule.windows = options.training.windows;
  schedule.shuffle_fraction = options.data.shuffle_fraction;
  schedule.seed = options.seed;
  schedule.stages = anchors.stages;
  return {anchors.training, schedule, start};
}

BatchSchedule Experiment::schedule(BatchCursor start) const {
  return training_schedule(options(), anchors(), start);
}

std::unique_ptr<Loader> training_loader(Experiment& experiment, BatchCursor start, Communicator& comm) {
  const RunOptions& options = experiment.options();
  Learner& learner = experiment.learner();
  return std::make_unique<Loader>(experiment.samples(), learner.model->layout(), experiment.schedule(start),
                                  LoaderOptions{.workers = static_cast<int>(options.data.workers),
                                                .ready = training_batches_ready(options),
                                                .division = division_of(options, *learner.model, comm.size()),
                                                .rank = comm.rank(),
                                                .seed = options.seed,
                                                .finish = with_routes(learner),
                                                .readers = learner.streams()});
}

std::int64_t Experiment::train_samples() const {
  return schedule({}).samples();
}

std::int64_t Experiment::last_step(std::int64_t step, BatchCursor next) const {
  const TrainingSection& training = options().training;
  const std::int64_t all = step + schedule(next).batches_left();
  return training.max_steps > 0 ? std::min(training.max_steps, all) : all;
}

BatchCursor Experiment::rescaled(BatchCursor next, bool window_end, std::int64_t before) const {
  const std::int64_t now = options().training.samples_of_step(), trained = next.batch * before;
  if (now == before || next.batch == 0) return next;
  if (!window_end && trained % now != 0) {
    fail_usage(
        "training.batch_size, training.accumulate: a step had {} samples and has {} now, but the {} samples "
        "that are trained of window {} are no multiple of {}: choose another size, or change it where a "
        "window begins (--from-step)",
        before, now, trained, next.window, now);
  }
  next.batch = window_end ? schedule({}).batches(next.window) : trained / now;
  return next;
}

std::int64_t Experiment::samples_until(std::int64_t step) const {
  return std::min(train_samples(), step * options().training.samples_of_step());
}

}  // namespace hstu
