// Keeps the next batches ready: worker threads build them ahead of the training step.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/batching/batch_layout.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/batching/schedule.h"

namespace hstu {

struct LoaderOptions {
  int workers = 2;  // threads that build batches
  int ready = 4;    // batches kept ready ahead of next(), at most
  // A global batch is cut into parts of at most this many tokens (a part has one sample at least); 0: one
  // part.
  std::int64_t part_tokens = 0;
  // This rank's samples of a global batch of n: [n * rank / ranks, n * (rank + 1) / ranks). It may have none.
  int rank = 0, ranks = 1;
  BatchMemory* memory = std::pmr::get_default_resource();  // of the batches; outlives the loader
};

// One part of a global batch. Every rank gets at least one part of each global batch, an empty one if need
// be.
struct LoadedBatch {
  explicit LoadedBatch(BatchMemory* memory) : batch(memory) {}
  Batch batch;
  bool last_part = true;            // of the global batch
  std::int64_t global_samples = 0;  // of the global batch: all parts of all ranks
  BatchCursor cursor;               // which global batch this is
  BatchCursor next;                 // where a resumed run continues after it
  bool window_end = false;          // the last global batch of its window
  double data_wait_ms = 0;          // how long next() waited for this part
};

// Batches and their order depend on the schedule alone, not on the number of workers. One thread calls
// next(); the builder, the layout and the schedule's anchors must outlive the loader. Destroying it early is
// fine: it waits for the batches that are being built and drops them. The memory of `ready` + 1 batches is
// reused: once it has grown to what batches need, nothing is allocated for them.
class Loader {
 public:
  // UsageError when a number is below its bound.
  Loader(const SampleBuilder& builder, const BatchLayout& layout, BatchSchedule schedule,
         const LoaderOptions& options = {});

  // The next part in order, null after the last; valid until the next call. An exception of a worker is
  // thrown here in the place of its batch, and again by every later call.
  const LoadedBatch* next();

 private:
  struct Slot {
    explicit Slot(BatchMemory* memory) : loaded(memory) {}
    LoadedBatch loaded;
    bool ready = false;  // `loaded` or `failure` waits for next()
    std::exception_ptr failure;
  };
  struct Claim {
    std::int64_t number = 0;  // of the part, from 0
    std::optional<BatchJob> job;
    std::span<const std::int64_t> positions;  // of this part
    bool last_part = true;
    std::exception_ptr failure;
  };
  struct Scratch {
    SampleScratch builder;
    Samples samples;
    LayoutScratch layout;
  };
  void work(const std::stop_token& stop, Scratch& scratch);
  Claim claim();
  // Takes the next part off rest_.
  std::span<const std::int64_t> take_part();
  void make(const Claim& claimed, Scratch& scratch, Slot& slot) const noexcept;
  Slot& slot(std::int64_t number) { return slots_[static_cast<std::size_t>(number) % slots_.size()]; }

  const SampleBuilder& builder_;
  const BatchLayout& layout_;
  LoaderOptions options_;

  std::mutex schedule_mutex_;  // never held together with mutex_ by the caller of next()
  BatchSchedule schedule_;
  std::int64_t claimed_ = 0;            // parts given to workers
  std::optional<BatchJob> job_;         // the global batch that parts are taken from
  std::span<const std::int64_t> rest_;  // its samples that no part has yet

  std::mutex mutex_;  // guards what follows, but for slots that are not ready: those are their worker's
  std::condition_variable_any changed_;
  std::vector<Slot> slots_;     // part n is in slot n % size
  std::int64_t delivered_ = 0;  // parts returned by next()
  std::int64_t batches_ =
      std::numeric_limits<std::int64_t>::max();  // known once a worker has reached the end

  LoadedBatch current_;  // what next() returned; its memory goes to the slot it takes the following one from
  std::vector<std::jthread> workers_;  // last: stopped and joined before the rest goes
};

}  // namespace hstu
