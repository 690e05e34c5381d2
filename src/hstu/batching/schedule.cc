#include "hstu/batching/schedule.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/batching/shuffle.h"

namespace hstu {

BatchSchedule::BatchSchedule(const AnchorList& anchors, const ScheduleOptions& options, BatchCursor start)
    : anchors_(anchors), options_(options), cursor_(start) {
  if (options.batch_size < 1) fail_usage("batch_size: expected at least 1, found {}", options.batch_size);
  if (options.epochs < 0)
    fail_usage("epochs: expected at least 0 (0 is without end), found {}", options.epochs);
  if (!(options.shuffle_fraction >= 0 && options.shuffle_fraction <= 1)) {
    fail_usage("shuffle_fraction: expected a value in [0, 1], found {}", options.shuffle_fraction);
  }
  if (options.first_window < 0 || options.first_window >= anchors.windows() || options.windows < 0) {
    fail_usage("windows: expected a first window in [0, {}) and a count of at least 0, found {} and {}",
               anchors.windows(), options.first_window, options.windows);
  }
  stages_ = make_stages();
  if (sum([&](std::int64_t w) { return batches(w); }) == 0) {
    std::int64_t largest = 0;
    for (std::int64_t w = stages_.front().begin; w < stages_.back().end; ++w) {
      largest = std::max(largest, static_cast<std::int64_t>(anchors_.window(w).size()));
    }
    fail_usage(
        "batch_size = {} with drop_last = {} leaves no batch: the largest of the {} windows holds {} "
        "samples; "
        "lower batch_size, set drop_last = false or raise window_seconds",
        options.batch_size, options.drop_last, stages_.back().end - stages_.front().begin,
        with_separators(largest));
  }
  if (cursor_ == BatchCursor{}) cursor_.window = options_.first_window;
  while (stage_ + 1 < stages_.size() && cursor_.window >= stages_[stage_].end) ++stage_;
  const Stage& stage = stages_[stage_];
  const bool inside = cursor_.epoch >= 0 && cursor_.batch >= 0 && cursor_.window >= stage.begin &&
                      cursor_.window < stage.end && cursor_.batch <= batches(cursor_.window);
  check(inside,
        "cannot continue at epoch {}, window {}, batch {}: the data has windows {} to {}; expected the "
        "dataset and options of the run that is resumed",
        start.epoch, start.window, start.batch, stages_.front().begin, stages_.back().end - 1);
}

std::vector<BatchSchedule::Stage> BatchSchedule::make_stages() const {
  std::vector<Stage> stages;
  std::int64_t begin = 0;
  for (const std::int64_t windows :
       options_.stages.empty() ? std::vector{anchors_.windows()} : options_.stages) {
    stages.push_back({begin, begin + windows, 1});
    begin += windows;
  }
  require(begin == anchors_.windows(), "{} windows of stages, {} of anchors", begin, anchors_.windows());
  Stage& first = stages.front();
  first.epochs = options_.epochs;
  first.begin = options_.first_window;
  if (options_.windows > 0) first.end = std::min(first.end, first.begin + options_.windows);
  return stages;
}

std::int64_t BatchSchedule::batches(std::int64_t window) const {
  const auto size = static_cast<std::int64_t>(anchors_.window(window).size());
  return options_.drop_last ? size / options_.batch_size
                            : (size + options_.batch_size - 1) / options_.batch_size;
}

std::int64_t BatchSchedule::samples(std::int64_t window) const {
  const auto size = static_cast<std::int64_t>(anchors_.window(window).size());
  return std::min(size, batches(window) * options_.batch_size);
}

template <typename OfWindow>
std::int64_t BatchSchedule::sum(const OfWindow& of_window) const {
  std::int64_t total = 0;
  for (const Stage& stage : stages_) {
    std::int64_t epoch = 0;
    for (std::int64_t w = stage.begin; w < stage.end; ++w) epoch += of_window(w);
    total += std::max<std::int64_t>(stage.epochs, 1) * epoch;
  }
  return total;
}

std::int64_t BatchSchedule::batches_per_epoch() const {
  std::int64_t total = 0;
  for (std::int64_t w = stages_.front().begin; w < stages_.front().end; ++w) total += batches(w);
  return total;
}

std::int64_t BatchSchedule::batches() const {
  return sum([&](std::int64_t w) { return batches(w); });
}

template <typename OfWindow>
std::int64_t BatchSchedule::sum_left(const OfWindow& of_window, std::int64_t done) const {
  if (at_end_) return 0;
  const auto of_windows = [&](std::int64_t begin, std::int64_t end) {
    std::int64_t total = 0;
    for (std::int64_t w = begin; w < end; ++w) total += of_window(w);
    return total;
  };
  const Stage& now = stages_[stage_];
  const bool is_beyond = now.epochs > 0 && cursor_.epoch >= now.epochs;  // there are fewer epochs than before
  if (is_beyond && stage_ + 1 == stages_.size()) return 0;
  std::int64_t left =
      of_windows(cursor_.window, now.end) - done +
      std::max<std::int64_t>(now.epochs - cursor_.epoch - 1, 0) * of_windows(now.begin, now.end);
  for (std::size_t s = stage_ + 1; s < stages_.size(); ++s)
    left += std::max<std::int64_t>(stages_[s].epochs, 1) * of_windows(stages_[s].begin, stages_[s].end);
  return left;
}

std::int64_t BatchSchedule::batches_left() const {
  return sum_left([&](std::int64_t w) { return batches(w); }, cursor_.batch);
}

std::int64_t BatchSchedule::samples_left() const {
  return sum_left([&](std::int64_t w) { return samples(w); },
                  std::min(samples(cursor_.window), cursor_.batch * options_.batch_size));
}

std::int64_t BatchSchedule::samples() const {
  return sum([&](std::int64_t w) { return samples(w); });
}

void BatchSchedule::load_window() {
  if (options_.shuffle_fraction <= 0) return;
  if (loaded_.epoch == cursor_.epoch && loaded_.window == cursor_.window) return;
  const auto window = anchors_.window(cursor_.window);
  auto positions = std::make_shared<std::vector<std::int64_t>>(window.begin(), window.end());
  shuffle_window(*positions, options_.shuffle_fraction, options_.seed, cursor_.epoch, cursor_.window);
  shuffled_ = std::move(positions);
  loaded_ = cursor_;
}

bool BatchSchedule::advance_window() {
  const Stage& stage = stages_[stage_];
  cursor_.batch = 0;
  if (++cursor_.window < stage.end) return true;
  if (stage.epochs == 0 || cursor_.epoch + 1 < stage.epochs) {
    cursor_.window = stage.begin;
    ++cursor_.epoch;
    return true;
  }
  do {  // a stage may have no window
    if (++stage_ == stages_.size()) return false;
  } while (stages_[stage_].begin == stages_[stage_].end);
  cursor_ = {.epoch = 0, .window = stages_[stage_].begin, .batch = 0};
  return true;
}

std::optional<BatchCursor> BatchSchedule::upcoming() {
  while (!at_end_ && cursor_.batch >= batches(cursor_.window)) at_end_ = !advance_window();
  if (at_end_) return std::nullopt;
  return cursor_;
}

std::optional<BatchJob> BatchSchedule::next() {
  if (!upcoming()) return std::nullopt;
  load_window();
  const auto window = shuffled_ ? std::span(*shuffled_) : anchors_.window(cursor_.window);
  const auto begin = static_cast<std::size_t>(cursor_.batch * options_.batch_size);
  BatchJob job;
  job.cursor = cursor_;
  job.positions =
      window.subspan(begin, std::min(static_cast<std::size_t>(options_.batch_size), window.size() - begin));
  job.shuffled = shuffled_;
  ++cursor_.batch;
  job.next = cursor_;
  job.window_end = cursor_.batch == batches(cursor_.window);
  return job;
}

}  // namespace hstu
