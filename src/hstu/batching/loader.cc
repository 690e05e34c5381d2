#include "hstu/batching/loader.h"

#include <algorithm>
#include <utility>

#include "hstu/base/clock.h"
#include "hstu/base/error.h"

namespace hstu {

Loader::Loader(const BatchBuilder& builder, BatchSchedule schedule, const LoaderOptions& options)
    : builder_(builder), schedule_(std::move(schedule)), current_(options.memory) {
  if (options.workers < 1) fail_usage("loader workers: expected at least 1, found {}", options.workers);
  if (options.ready < 1) fail_usage("loader ready: expected at least 1, found {}", options.ready);
  for (int i = 0; i < options.ready; ++i) slots_.emplace_back(options.memory);
  for (int i = 0; i < options.workers; ++i) {
    workers_.emplace_back(
        [this, scratch = builder.scratch()](const std::stop_token& stop) mutable { work(stop, scratch); });
  }
}

// Jobs are numbered in the order of the schedule. A window is shuffled here, by the worker that enters it
// first, while batches of the window before it are still being built and read.
Loader::Claim Loader::claim() {
  const std::scoped_lock lock(schedule_mutex_);
  Claim claimed{.number = claimed_++, .job = {}, .failure = {}};
  try {
    claimed.job = schedule_.next();
  } catch (...) {
    claimed.failure = std::current_exception();
  }
  return claimed;
}

void Loader::work(const std::stop_token& stop, BatchScratch& scratch) {
  bool more = true;
  while (more) {
    const Claim claimed = claim();
    const bool end = !claimed.job && !claimed.failure;
    {
      std::unique_lock lock(mutex_);
      if (end) {
        batches_ = std::min(batches_, claimed.number);
        changed_.notify_all();
        return;
      }
      const auto room = [&] {
        return claimed.number < delivered_ + static_cast<std::int64_t>(slots_.size());
      };
      if (!changed_.wait(lock, stop, room) || stop.stop_requested()) return;
    }
    Slot& mine = slot(claimed.number);  // nobody else's from here on until it is ready
    make(claimed, scratch, mine);
    more = !mine.failure;
    const std::scoped_lock lock(mutex_);
    mine.ready = true;
    changed_.notify_all();
  }
}

void Loader::make(const Claim& claimed, BatchScratch& scratch, Slot& slot) const noexcept {
  slot.failure = claimed.failure;
  if (slot.failure) return;
  try {
    builder_.build(claimed.job->positions, slot.loaded.batch, scratch);
    slot.loaded.cursor = claimed.job->cursor;
    slot.loaded.next = claimed.job->next;
    slot.loaded.window_end = claimed.job->window_end;
  } catch (...) {
    slot.failure = std::current_exception();
  }
}

const LoadedBatch* Loader::next() {
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  Slot& first = slot(delivered_);
  changed_.wait(lock, [&] { return first.ready || batches_ == delivered_; });
  if (!first.ready) return nullptr;
  if (first.failure) std::rethrow_exception(first.failure);
  std::swap(current_, first.loaded);
  first.ready = false;
  ++delivered_;
  changed_.notify_all();
  lock.unlock();
  current_.data_wait_ms = 1000 * seconds_since(start);
  total_data_wait_ms_ += current_.data_wait_ms;
  return &current_;
}

}  // namespace hstu
