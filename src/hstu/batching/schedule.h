// The assignment of anchors to batches and their order: stages, epochs, windows in order of time, consecutive
// batches within.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hstu/batching/options.h"
#include "hstu/dataset/anchor_list.h"

namespace hstu {

// The place of a batch in the run. A cursor past a window's last batch means the next window's first. The
// window says the stage, in which the epochs count.
struct BatchCursor {
  std::int64_t epoch = 0, window = 0, batch = 0;
  bool operator==(const BatchCursor&) const = default;
};

// One batch to build: batch s of a window is the slice [s * batch_size, (s + 1) * batch_size) of the window's
// (shuffled) anchors.
struct BatchJob {
  BatchCursor cursor;
  BatchCursor next;         // the cursor at which a resumed run continues after this batch
  bool window_end = false;  // the last batch of its window
  std::span<const std::int64_t> positions;
  std::shared_ptr<const std::vector<std::int64_t>> shuffled;  // keeps positions alive
};

// Generates the jobs lazily, starting at any cursor. The list of anchors must outlive it.
class BatchSchedule {
 public:
  // UsageError for options out of range and if no window has a batch; Error for a start that is not in the
  // schedule (a checkpoint of another dataset or configuration).
  BatchSchedule(const AnchorList& anchors, const ScheduleOptions& options, BatchCursor start = {});

  // Empty after the last epoch.
  std::optional<BatchJob> next();

  // The place of the batch that next() returns; empty after the last epoch.
  std::optional<BatchCursor> upcoming();

  std::int64_t batches_per_epoch() const;  // of the first stage
  // Of all stages and epochs, which must have an end; without the samples that drop_last omits.
  std::int64_t batches() const;
  std::int64_t samples() const;
  std::int64_t batches(std::int64_t window) const;  // of a window
  // From the batch that next() returns on; 0 in an epoch that is not among those of the last stage.
  std::int64_t batches_left() const;
  std::int64_t samples_left() const;

 private:
  struct Stage {
    std::int64_t begin = 0, end = 0;  // windows
    std::int64_t epochs = 1;          // 0: without end
  };
  // The sum of of_window(window) over all epochs.
  template <typename OfWindow>
  std::int64_t sum(const OfWindow& of_window) const;
  // The same from the cursor on, of which its window has done `done`.
  template <typename OfWindow>
  std::int64_t sum_left(const OfWindow& of_window, std::int64_t done) const;
  std::vector<Stage> make_stages() const;
  std::int64_t samples(std::int64_t window) const;
  // To the next window; false after the last.
  bool advance_window();
  void load_window();

  const AnchorList& anchors_;
  ScheduleOptions options_;
  std::vector<Stage> stages_;
  std::size_t stage_ = 0;  // of the cursor
  bool at_end_ = false;
  BatchCursor cursor_;
  BatchCursor loaded_{.epoch = -1};                            // its window is the one in `shuffled_`
  std::shared_ptr<const std::vector<std::int64_t>> shuffled_;  // null without a shuffle
};

}  // namespace hstu
