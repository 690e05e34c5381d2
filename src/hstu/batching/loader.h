// Keeps the next batches ready: worker threads build them ahead of the training step.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/batching/batch_builder.h"
#include "hstu/batching/schedule.h"

namespace hstu {

struct LoaderOptions {
  int workers = 2;                                         // threads that build batches
  int ready = 4;                                           // batches kept ready ahead of next(), at most
  BatchMemory* memory = std::pmr::get_default_resource();  // of the batches; outlives the loader
};

struct LoadedBatch {
  explicit LoadedBatch(BatchMemory* memory) : batch(memory) {}
  Batch batch;
  BatchCursor cursor;       // which batch this is
  BatchCursor next;         // where a resumed run goes on after it
  bool window_end = false;  // the last batch of its window
  double data_wait_ms = 0;  // how long next() waited for it
};

// Batches and their order depend on the schedule alone, not on the number of workers. One thread calls
// next(); the builder and the schedule's anchors must outlive the loader. Destroying it early is fine: it
// waits for the batches that are being built and drops them. The memory of `ready` + 1 batches goes round:
// once it has grown to what batches need, nothing is allocated for them.
class Loader {
 public:
  // UsageError when a number is below 1.
  Loader(const BatchBuilder& builder, BatchSchedule schedule, const LoaderOptions& options = {});

  // The next batch in order, null after the last; valid until the next call. An exception of a worker is
  // thrown here in the place of its batch, and again by every later call.
  const LoadedBatch* next();

  double total_data_wait_ms() const { return total_data_wait_ms_; }  // of all calls of next()

 private:
  struct Slot {
    explicit Slot(BatchMemory* memory) : loaded(memory) {}
    LoadedBatch loaded;
    bool ready = false;  // `loaded` or `failure` waits for next()
    std::exception_ptr failure;
  };
  struct Claim {
    std::int64_t number = 0;  // of the batch, from 0
    std::optional<BatchJob> job;
    std::exception_ptr failure;
  };
  void work(const std::stop_token& stop, BatchScratch& scratch);
  Claim claim();
  void make(const Claim& claimed, BatchScratch& scratch, Slot& slot) const noexcept;
  Slot& slot(std::int64_t number) { return slots_[static_cast<std::size_t>(number) % slots_.size()]; }

  const BatchBuilder& builder_;

  std::mutex schedule_mutex_;  // never held together with mutex_ by the caller of next()
  BatchSchedule schedule_;
  std::int64_t claimed_ = 0;  // batches given to workers

  std::mutex mutex_;  // guards what follows, but for slots that are not ready: those are their worker's
  std::condition_variable_any changed_;
  std::vector<Slot> slots_;                                          // batch n lies in slot n % size
  std::int64_t delivered_ = 0;                                       // batches returned by next()
  std::int64_t batches_ = std::numeric_limits<std::int64_t>::max();  // known once a worker has met the end

  LoadedBatch current_;  // what next() returned; its memory goes to the slot it takes the following one from
  double total_data_wait_ms_ = 0;
  std::vector<std::jthread> workers_;  // last: stopped and joined before the rest goes
};

}  // namespace hstu
