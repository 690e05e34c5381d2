#include "hstu/batching/loader.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/thread_stacks.h"
#include "hstu/device/pinned_memory.h"

namespace hstu {
namespace {

// Appends the place of each sample: that of its anchor, the next of `positions` (n) with `places` (n).
// Several consecutive samples may have one anchor.
void add_places(const Samples& samples, std::span<const std::int64_t> positions,
                std::span<const std::int64_t> places, std::vector<std::int64_t>& of_samples) {
  std::size_t anchor = 0;
  for (const std::int64_t position : samples.position) {
    while (positions[anchor] != position) ++anchor;
    of_samples.push_back(places[anchor]);
  }
}

}  // namespace

Loader::Loader(const SampleBuilder& builder, const BatchLayout& layout, BatchSchedule schedule,
               const LoaderOptions& options)
    : builder_(builder),
      layout_(layout),
      options_(options),
      copies_(own_context(options.readers.front().device())),
      schedule_(std::move(schedule)),
      current_{empty_batch(), empty_batch()} {
  if (options.workers < 1) fail_usage("loader workers: expected at least 1, found {}", options.workers);
  if (options.ready < 1) fail_usage("loader ready: expected at least 1, found {}", options.ready);
  const DivisionRule& rule = options.division;
  if (rule.piece_samples < 0)
    fail_usage("loader piece_samples: expected at least 0, found {}", rule.piece_samples);
  if (rule.part_tokens < 0) fail_usage("loader part_tokens: expected at least 0, found {}", rule.part_tokens);
  require(rule.ranks >= 1 && options.rank >= 0 && options.rank < rule.ranks,
          "expected a rank in [0, {}), found {}", rule.ranks, options.rank);
  for (int i = 0; i < options.ready; ++i) slots_.emplace_back(empty_batch());
  for (int i = 0; i < options.workers; ++i) {
    workers_.emplace_back(
        [this, i, scratch = Scratch{i, builder.scratch(), {}, {}}](const std::stop_token& stop) mutable {
          name_this_thread(fmt::format("loader {}", i));
          work(stop, scratch);
        });
  }
}

Loader::~Loader() {
  workers_.clear();  // stops and joins them
  // Ordinary memory and the driver's know nothing of streams: what uses the batches ends first.
  try {
    copies_.stream.synchronize();
    for (const Stream& reader : options_.readers) reader.synchronize();
  } catch (const Error&) {  // the device has failed, and runs nothing any more
  }
}

LoadedBatch Loader::empty_batch() const {
  BatchMemory* const memory =
      options_.memory != nullptr ? options_.memory : transfer_memory(options_.readers.front().device());
  return {memory, options_.readers};
}

void Loader::begin_piece() {
  DividedPiece piece = *pieces_->next();
  if (options_.division.divide && options_.division.ranks > 1)
    division_.add(piece.division, 1000 * seconds_between(piece.begin, piece.end));
  parts_left_ = piece.parts;
  of_rank_ =
      std::make_shared<const SamplesOfRank>(std::move(piece.ranks[static_cast<std::size_t>(options_.rank)]));
  rest_ = of_rank_->positions;
}

// Parts are numbered in the order of the schedule. The first worker that reaches a window shuffles it here,
// while batches of the previous window are still being built and read.
Loader::Claim Loader::claim() {
  const std::scoped_lock lock(schedule_mutex_);
  Claim claimed{.number = claimed_++, .job = {}, .positions = {}, .last_part = true, .failure = {}};
  try {
    if (!job_) {
      job_ = schedule_.next();
      if (!job_) return claimed;
      pieces_.emplace(job_->positions, options_.division, builder_);
      division_ = {};
    }
    if (parts_left_ == 0) {
      claimed.division_begin = Clock::now();
      begin_piece();
      claimed.division_end = Clock::now();
    }
    claimed.positions = first_part(builder_, rest_, options_.division.part_tokens);
    claimed.of_rank = of_rank_;
    claimed.division = division_;
    rest_ = rest_.subspan(claimed.positions.size());
    claimed.job = job_;
    claimed.last_part = --parts_left_ == 0 && !pieces_->has_next();
    if (claimed.last_part) job_.reset();
  } catch (...) {
    claimed.failure = std::current_exception();
  }
  return claimed;
}

void Loader::work(const std::stop_token& stop, Scratch& scratch) {
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
    Slot& mine = slot(claimed.number);  // owned by this worker until it is ready
    make(claimed, scratch, mine);
    more = !mine.failure;
    const std::scoped_lock lock(mutex_);
    mine.ready = true;
    changed_.notify_all();
  }
}

void Loader::make(const Claim& claimed, Scratch& scratch, Slot& slot) const noexcept {
  slot.failure = claimed.failure;
  if (slot.failure) return;
  try {
    make_current(copies_.device());  // of this thread
    slot.loaded.copied.synchronize();
    slot.loaded.worker = scratch.worker;
    slot.loaded.build_begin = Clock::now();
    scratch.samples.draws =
        options_.fixed_draws ? BatchDraws(options_.seed) : BatchDraws(options_.seed, claimed.job->cursor);
    scratch.samples.batch = claimed.job->positions;
    builder_.build(claimed.positions, scratch.samples, scratch.builder);
    slot.loaded.batch.clear();
    layout_.lay_out(scratch.samples, scratch.layout, slot.loaded.batch);
    slot.loaded.batch.number = claimed.number;
    slot.loaded.batch.places.clear();
    if (options_.division.ranks > 1) {
      const auto first =
          static_cast<std::size_t>(claimed.positions.data() - claimed.of_rank->positions.data());
      add_places(scratch.samples, claimed.positions,
                 std::span(claimed.of_rank->places).subspan(first, claimed.positions.size()),
                 slot.loaded.batch.places);
    }
    if (options_.finish) options_.finish(slot.loaded.batch);
    slot.loaded.global_samples = static_cast<std::int64_t>(claimed.job->positions.size());
    // A batch without examples has the loss 0.
    slot.loaded.batch.supervised =
        std::max<std::int64_t>(1, builder_.examples(claimed.job->positions, scratch.builder));
    slot.loaded.last_part = claimed.last_part;
    slot.loaded.cursor = claimed.job->cursor;
    slot.loaded.next = claimed.job->next;
    slot.loaded.window_end = claimed.job->window_end;
    slot.loaded.division = claimed.division;
    slot.loaded.division_begin = claimed.division_begin;
    slot.loaded.division_end = claimed.division_end;
    for (const Event& read : slot.loaded.read) copies_.stream.wait(read);
    slot.loaded.batch.copy_to(copies_);
    slot.loaded.copied.record(copies_.stream);
    slot.loaded.build_end = Clock::now();
  } catch (...) {
    slot.failure = std::current_exception();
  }
}

Loader::Slot* Loader::wait_for_next(std::unique_lock<std::mutex>& lock) {
  Slot& first = slot(delivered_);
  changed_.wait(lock, [&] { return first.ready || batches_ == delivered_; });
  if (!first.ready) return nullptr;
  if (first.failure) std::rethrow_exception(first.failure);
  return &first;
}

LoadedBatch* Loader::next() {
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  Slot* const first = wait_for_next(lock);
  if (first == nullptr) return nullptr;
  LoadedBatch& current = current_[turn_];
  turn_ = 1 - turn_;
  for (std::size_t i = 0; i < options_.readers.size(); ++i) {
    current.read[i].record(options_.readers[i]);
    options_.readers[i].wait(first->loaded.copied);
  }
  std::swap(current, first->loaded);
  first->ready = false;
  ++delivered_;
  changed_.notify_all();
  lock.unlock();
  const Clock::time_point end = Clock::now();
  current.data_wait_ms = 1000 * seconds_between(start, end);
  exposed_ms_ += std::max(0.0, 1000 * seconds_between(std::max(start, current.division_begin),
                                                      std::min(end, current.division_end)));
  current.division.exposed_ms = std::min(exposed_ms_, current.division.ms);
  if (current.last_part) exposed_ms_ = 0;
  return &current;
}

const Batch* Loader::await_later() {
  std::unique_lock lock(mutex_);
  const Slot* const first = wait_for_next(lock);
  if (first == nullptr) return nullptr;
  for (const Stream& reader : options_.readers) reader.wait(first->loaded.copied);
  return &first->loaded.batch;
}

const Batch* Loader::later() {
  const std::scoped_lock lock(mutex_);
  const Slot& first = slot(delivered_);
  return first.ready && !first.failure ? &first.loaded.batch : nullptr;
}

}  // namespace hstu
