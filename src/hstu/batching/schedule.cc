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
  end_window_ = options.windows == 0 ? anchors.windows()
                                     : std::min(anchors.windows(), options.first_window + options.windows);
  if (batches_per_epoch() == 0) {
    std::int64_t largest = 0;
    for (std::int64_t w = options_.first_window; w < end_window_; ++w) {
      largest = std::max(largest, static_cast<std::int64_t>(anchors_.window(w).size()));
    }
    fail_usage(
        "batch_size = {} with drop_last = {} leaves no batch: the largest of the {} windows holds {} "
        "samples; "
        "lower batch_size, set drop_last = false or raise window_seconds",
        options.batch_size, options.drop_last, end_window_ - options.first_window, with_separators(largest));
  }
  if (cursor_ == BatchCursor{}) cursor_.window = options_.first_window;
  const bool inside = cursor_.epoch >= 0 && cursor_.batch >= 0 && cursor_.window >= options_.first_window &&
                      cursor_.window < end_window_ && cursor_.batch <= batches(cursor_.window);
  check(inside,
        "cannot continue at epoch {}, window {}, batch {}: the data has windows {} to {}; expected the "
        "dataset and options of the run that is resumed",
        start.epoch, start.window, start.batch, options_.first_window, end_window_ - 1);
}

std::int64_t BatchSchedule::batches(std::int64_t window) const {
  const auto size = static_cast<std::int64_t>(anchors_.window(window).size());
  return options_.drop_last ? size / options_.batch_size
                            : (size + options_.batch_size - 1) / options_.batch_size;
}

std::int64_t BatchSchedule::batches_per_epoch() const {
  std::int64_t total = 0;
  for (std::int64_t w = options_.first_window; w < end_window_; ++w) total += batches(w);
  return total;
}

std::int64_t BatchSchedule::samples_per_epoch() const {
  std::int64_t total = 0;
  for (std::int64_t w = options_.first_window; w < end_window_; ++w) {
    const auto size = static_cast<std::int64_t>(anchors_.window(w).size());
    total += std::min(size, batches(w) * options_.batch_size);
  }
  return total;
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

std::optional<BatchJob> BatchSchedule::next() {
  const auto at_end = [&] { return options_.epochs != 0 && cursor_.epoch >= options_.epochs; };
  while (!at_end() && cursor_.batch >= batches(cursor_.window)) {
    cursor_.batch = 0;
    if (++cursor_.window == end_window_) {
      cursor_.window = options_.first_window;
      ++cursor_.epoch;
    }
  }
  if (at_end()) return std::nullopt;
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
