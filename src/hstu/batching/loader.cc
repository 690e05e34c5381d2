#include "hstu/batching/loader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "hstu/base/error.h"

namespace hstu {

Loader::Loader(const BatchBuilder& builder, BatchSchedule schedule, const LoaderOptions& options)
    : builder_(builder), schedule_(std::move(schedule)) {
  if (options.workers < 1) fail_usage("loader workers: expected at least 1, found {}", options.workers);
  if (options.ready < 1) fail_usage("loader ready: expected at least 1, found {}", options.ready);
  slots_.resize(static_cast<std::size_t>(options.ready));
  for (int i = 0; i < options.workers; ++i) {
    workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
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

void Loader::work(const std::stop_token& stop) {
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
    Slot made = claimed.failure ? Slot{.loaded = {}, .failure = claimed.failure} : make(*claimed.job);
    more = !made.failure;
    const std::scoped_lock lock(mutex_);
    slot(claimed.number) = std::move(made);
    changed_.notify_all();
  }
}

Loader::Slot Loader::make(const BatchJob& job) const noexcept {
  try {
    return {.loaded = LoadedBatch{.batch = builder_.build(job.positions),
                                  .cursor = job.cursor,
                                  .next = job.next,
                                  .window_end = job.window_end,
                                  .wait_ms = 0},
            .failure = {}};
  } catch (...) {
    return {.loaded = {}, .failure = std::current_exception()};
  }
}

std::optional<LoadedBatch> Loader::next() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  Slot& first = slot(delivered_);
  changed_.wait(lock, [&] { return first.loaded || first.failure || batches_ == delivered_; });
  if (first.failure) std::rethrow_exception(first.failure);
  if (!first.loaded) return std::nullopt;
  std::optional<LoadedBatch> result = std::exchange(first.loaded, std::nullopt);
  ++delivered_;
  changed_.notify_all();
  lock.unlock();
  const std::chrono::duration<double, std::milli> waited = std::chrono::steady_clock::now() - start;
  result->wait_ms = waited.count();
  total_wait_ms_ += result->wait_ms;
  return result;
}

}  // namespace hstu
