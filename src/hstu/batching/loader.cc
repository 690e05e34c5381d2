#include "hstu/batching/loader.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/device/pinned_memory.h"

namespace hstu {

std::span<const std::int64_t> first_part(const SampleBuilder& builder, std::span<const std::int64_t> samples,
                                         std::int64_t part_tokens) {
  if (part_tokens == 0) return samples;
  std::int64_t tokens = 0;
  std::size_t count = 0;
  for (; count < samples.size(); ++count) {
    tokens += builder.most_tokens(samples[count]);
    if (tokens > part_tokens && count > 0) break;
  }
  return samples.first(count);
}

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
  if (options.piece_samples < 0)
    fail_usage("loader piece_samples: expected at least 0, found {}", options.piece_samples);
  if (options.part_tokens < 0)
    fail_usage("loader part_tokens: expected at least 0, found {}", options.part_tokens);
  require(options.ranks >= 1 && options.rank >= 0 && options.rank < options.ranks,
          "expected a rank in [0, {}), found {}", options.ranks, options.rank);
  for (int i = 0; i < options.ready; ++i) slots_.emplace_back(empty_batch());
  for (int i = 0; i < options.workers; ++i) {
    workers_.emplace_back([this, scratch = Scratch{i, builder.scratch(), {}, {}}](
                              const std::stop_token& stop) mutable { work(stop, scratch); });
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

// Ranks whose samples are longer need more parts, and the others get as many, because tables that are split
// over ranks are read together.
void Loader::begin_piece() {
  const std::size_t most =
      options_.piece_samples > 0 ? static_cast<std::size_t>(options_.piece_samples) : rest_of_batch_.size();
  const std::span piece = rest_of_batch_.first(std::min(most, rest_of_batch_.size()));
  const auto first_place = static_cast<std::int64_t>(job_->positions.size() - rest_of_batch_.size());
  rest_of_batch_ = rest_of_batch_.subspan(piece.size());
  Division division;
  if (options_.divide && options_.ranks > 1) {
    std::vector<std::int64_t> tokens;
    tokens.reserve(piece.size());
    for (const std::int64_t position : piece) tokens.push_back(builder_.most_tokens(position));
    const Clock::time_point begin = Clock::now();
    division = options_.divide(tokens, options_.ranks);
    division_.add(division, 1000 * seconds_since(begin));
  } else {
    division.parts = contiguous_partition(piece.size(), options_.ranks);
  }
  const Partition& parts = division.parts;
  parts_left_ = 1;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    PieceOfRank of_rank;
    of_rank.positions.reserve(parts[rank].size());
    of_rank.places.reserve(parts[rank].size());
    for (const std::int32_t sample : parts[rank]) {
      of_rank.positions.push_back(piece[static_cast<std::size_t>(sample)]);
      of_rank.places.push_back(first_place + sample);
    }
    std::int64_t count = 0;
    for (std::span<const std::int64_t> left = of_rank.positions; !left.empty(); ++count)
      left = left.subspan(first_part(builder_, left, options_.part_tokens).size());
    parts_left_ = std::max(parts_left_, count);
    if (rank == static_cast<std::size_t>(options_.rank))
      of_rank_ = std::make_shared<const PieceOfRank>(std::move(of_rank));
  }
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
      rest_of_batch_ = job_->positions;
      division_ = {};
    }
    if (parts_left_ == 0) {
      claimed.division_begin = Clock::now();
      begin_piece();
      claimed.division_end = Clock::now();
    }
    claimed.positions = first_part(builder_, rest_, options_.part_tokens);
    claimed.of_rank = of_rank_;
    claimed.division = division_;
    rest_ = rest_.subspan(claimed.positions.size());
    claimed.job = job_;
    claimed.last_part = --parts_left_ == 0 && rest_of_batch_.empty();
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
    builder_.build(claimed.positions, scratch.samples, scratch.builder);
    slot.loaded.batch.clear();
    layout_.lay_out(scratch.samples, scratch.layout, slot.loaded.batch);
    slot.loaded.batch.number = claimed.number;
    slot.loaded.batch.places.clear();
    if (options_.ranks > 1) {
      const auto first =
          claimed.of_rank->places.begin() + (claimed.positions.data() - claimed.of_rank->positions.data());
      slot.loaded.batch.places.assign(first, first + std::ssize(claimed.positions));
    }
    if (options_.finish) options_.finish(slot.loaded.batch);
    slot.loaded.global_samples = static_cast<std::int64_t>(claimed.job->positions.size());
    slot.loaded.batch.supervised = builder_.examples(claimed.job->positions, scratch.builder);
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
