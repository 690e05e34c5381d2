// Prepares the next batches: worker threads build them ahead of the training step, and copy them to its
// device.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/batching/batch.h"
#include "hstu/batching/batch_division.h"
#include "hstu/batching/batch_layout.h"
#include "hstu/batching/sample_builder.h"
#include "hstu/batching/schedule.h"

namespace hstu {

struct LoaderOptions {
  int workers = 2;             // threads that build batches
  int ready = 4;               // maximum number of batches prepared ahead of next()
  DivisionRule division = {};  // of each global batch
  int rank = 0;                // this one, below division.ranks
  std::uint64_t seed = 0;      // of what layouts draw
  bool fixed_draws = false;    // the same in every batch: of evaluations
  // Adds columns to every batch, on the thread that builds it, before it is copied.
  std::function<void(Batch&)> finish = {};
  // Where the batches are read. For streams of a GPU each batch is built in page-locked memory and copied
  // there on a stream of the loader's own, beside their work.
  std::vector<Stream> readers = {Stream()};
  BatchMemory* memory = nullptr;  // of the batches, outlives the loader; null: transfer_memory()
};

// One part of a global batch. Every rank gets the same number of parts of a global batch, at least one; they
// may be empty.
struct LoadedBatch {
  LoadedBatch(BatchMemory* memory, const std::vector<Stream>& readers)
      : batch(memory),
        copied(readers.front().device()),
        read(readers.size(), Event(readers.front().device())) {}
  Batch batch;
  bool last_part = true;            // of the global batch
  std::int64_t global_samples = 0;  // of the global batch: all parts of all ranks
  BatchCursor cursor;               // of this global batch
  BatchCursor next;                 // the cursor at which a resumed run continues after it
  bool window_end = false;          // the last global batch of its window
  DivisionFigures division;         // of the global batch: of its pieces so far
  // When its piece was divided, if this is the first part of one: from begin to end.
  Clock::time_point division_begin, division_end;
  double data_wait_ms = 0;  // time that next() waited for this part
  int worker = 0;           // the thread that built it, from 0
  Clock::time_point build_begin, build_end;
  // The loader's: the copy to the device is done, so its host memory may change; the work of each reader on
  // the copy is done, so the copy's memory may change.
  Event copied;
  std::vector<Event> read;
};

// Batches and their order depend only on the schedule, not on the number of workers. One thread calls next();
// the builder, the layout and the schedule's anchors must outlive the loader. It may be destroyed early: the
// destructor waits for the batches in progress, and for the work of the readers, and drops them. The memory
// of `ready` + 2 batches, and of their copies on the device, is reused: after it has grown to the size of the
// batches, nothing is allocated for them.
class Loader {
 public:
  // UsageError if a number is below its bound.
  Loader(const SampleBuilder& builder, const BatchLayout& layout, BatchSchedule schedule,
         const LoaderOptions& options = {});
  ~Loader();

  // The next part in order, null after the last; valid until the call after the next, also for what the
  // readers hold by then. Work put on the readers from now on finds the batch's tensors on its device. An
  // exception of a worker is thrown here in place of its batch, and again by every later call.
  LoadedBatch* next();
  // The part that the next call of next() will return, if it is built, to read its columns in host memory
  // until that call; else null.
  const Batch* later();
  // The same, but waits until it is built, and throws what next() will throw; null after the last part. Work
  // put on the readers from now on finds its tensors on its device.
  const Batch* await_later();

 private:
  struct Slot {
    explicit Slot(LoadedBatch empty) : loaded(std::move(empty)) {}
    LoadedBatch loaded;
    bool ready = false;  // `loaded` or `failure` waits for next()
    std::exception_ptr failure;
  };
  struct Claim {
    std::int64_t number = 0;  // of the part, from 0
    std::optional<BatchJob> job;
    std::span<const std::int64_t> positions;  // of this part
    DivisionFigures division = {};
    Clock::time_point division_begin = {}, division_end = {};
    std::shared_ptr<const SamplesOfRank> of_rank = {};  // what they are a part of
    bool last_part = true;
    std::exception_ptr failure;
  };
  struct Scratch {
    int worker;
    SampleScratch builder;
    Samples samples;
    LayoutScratch layout;
  };
  void work(const std::stop_token& stop, Scratch& scratch);
  Claim claim();
  void begin_piece();  // the next one of job_
  void make(const Claim& claimed, Scratch& scratch, Slot& slot) const noexcept;
  LoadedBatch empty_batch() const;
  // Of `lock` on mutex_: the slot of the next part, which is ready; null after the last part.
  Slot* wait_for_next(std::unique_lock<std::mutex>& lock);
  Slot& slot(std::int64_t number) { return slots_[static_cast<std::size_t>(number) % slots_.size()]; }

  const SampleBuilder& builder_;
  const BatchLayout& layout_;
  LoaderOptions options_;
  Context copies_;  // the stream of the copies, and their memory

  std::mutex schedule_mutex_;  // the caller of next() never holds it together with mutex_
  BatchSchedule schedule_;
  std::int64_t claimed_ = 0;                      // parts claimed by workers
  std::optional<BatchJob> job_;                   // the global batch that parts are taken from
  std::optional<BatchDivision> pieces_;           // of job_
  std::shared_ptr<const SamplesOfRank> of_rank_;  // of the current piece
  std::span<const std::int64_t> rest_;            // those that are in no part yet
  std::int64_t parts_left_ = 0;                   // of the piece, including those that are empty
  DivisionFigures division_;                      // of the batch so far

  std::mutex mutex_;  // guards the following members except slots that are not ready, which a worker owns
  std::condition_variable_any changed_;
  std::vector<Slot> slots_;                                          // part n is in slot n % size
  std::int64_t delivered_ = 0;                                       // parts returned by next()
  double exposed_ms_ = 0;                                            // of divisions of the batch so far
  std::int64_t batches_ = std::numeric_limits<std::int64_t>::max();  // set when a worker reaches the end

  // Returned by the last two calls of next(), which takes turns; the next but one swaps its memory with that
  // of a slot.
  std::array<LoadedBatch, 2> current_;
  std::size_t turn_ = 0;
  std::vector<std::jthread> workers_;  // last: stopped and joined before the other members are destroyed
};

}  // namespace hstu
