#include "hstu/batching/loader.h"

#include <chrono>

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
std::optional<BatchJob> Loader::claim(std::int64_t& number) {
  const std::scoped_lock lock(schedule_mutex_);
  number = claimed_;
  std::optional<BatchJob> job = schedule_.next();
  if (job) ++claimed_;
  return job;
}

void Loader::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::int64_t number = 0;
    Slot made;
    try {
      const std::optional<BatchJob> job = claim(number);
      {
        std::unique_lock lock(mutex_);
        if (!job) {
          batches_ = number;
          changed_.notify_all();
          return;
        }
        const auto room = [&] { return number < delivered_ + static_cast<std::int64_t>(slots_.size()); };
        if (!changed_.wait(lock, stop, room)) return;
      }
      made.loaded = LoadedBatch{.batch = builder_.build(job->positions),
                                .cursor = job->cursor,
                                .next = job->next,
                                .window_end = job->window_end};
    } catch (...) {
      made.failure = std::current_exception();
    }
    const std::scoped_lock lock(mutex_);
    slot(number) = std::move(made);
    changed_.notify_all();
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
