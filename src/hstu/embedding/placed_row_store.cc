#include "hstu/embedding/placed_row_store.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/device/pinned_memory.h"

namespace hstu {
namespace {

// Page-locked memory is slow to get in small pieces.
constexpr std::int64_t kPinnedChunk = std::int64_t{32} << 20;

constexpr std::size_t kFileRows = 1 << 14;  // that are between the cache and a file at a time

}  // namespace

PlacedRowStore::PlacedRowStore(const RowShape& shape, const Context& where, CacheSize cache,
                               std::unique_ptr<RowFile> file)
    : shape_(shape),
      size_(cache),
      directory_(shape.rows),
      lines_(make_row_lines(shape, where)),
      below_(cache.lines > 0 && file == nullptr ? below_width(shape) : 0, transfer_memory(where.device()),
             std::min(kPinnedChunk, shape.rows * below_width(shape) * std::int64_t{sizeof(float)})),
      file_(std::move(file)),
      moved_(where.device()),
      blocks_(where.stream) {
  if (cache.lines == 0) return;
  cache_.emplace(directory_, cache.lines);
  lines_->grow(cache.lines);
}

std::int64_t PlacedRowStore::bytes() const {
  return directory_.bytes() + lines_->bytes() + below_.bytes() + (cache_ ? cache_->bytes() : 0);
}

void PlacedRowStore::create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) {
  const std::vector<std::int64_t> created = directory_.create_slots(ids, slots);
  if (created.empty()) return;
  if (cache_) return cache_->add(created, RowCache::kNowhere);
  std::vector<std::int64_t> their_ids;
  their_ids.reserve(created.size());
  for (const std::int64_t slot : created) their_ids.push_back(directory_.row(slot).id);
  grow_lines();
  lines_->begin(created, their_ids);
}

// An eighth more, so that a growing table does not get memory in every step.
void PlacedRowStore::grow_lines() {
  if (directory_.slots() <= room_) return;
  room_ = directory_.slots() + directory_.slots() / 8;
  lines_->grow(room_);
}

void PlacedRowStore::use(std::span<const std::int64_t> slots) {
  begin_use(slots);
  choose_lines();
  move_rows();
}

void PlacedRowStore::begin_use(std::span<const std::int64_t> slots) {
  if (directory_.follows_changes()) {
    for_rows(slots.size(), width(), [&](std::size_t i) {
      if (slots[i] >= 0) directory_.touch(directory_.row(slots[i]));
    });
  }
  if (!cache_) return;
  in_next_step_ = false;
  coming_ = pin(slots);
}

std::vector<std::int64_t> PlacedRowStore::pin(std::span<const std::int64_t> slots) {
  try {
    return cache_->pin(slots);
  } catch (const CacheTooSmall& error) {
    if (!size_.grows) throw;
    const std::int64_t lines = error.rows + error.rows / 8;
    cache_->grow(lines);
    lines_->grow(lines);
    return cache_->pin(slots);
  }
}

void PlacedRowStore::begin_prefetch(std::span<const std::int64_t> ids) {
  if (!cache_) return;
  in_next_step_ = true;
  coming_.resize(ids.size());
  directory_.find_slots(ids, coming_.data());
}

void PlacedRowStore::choose_lines() {
  if (cache_) moves_ = in_next_step_ ? cache_->prefetch(coming_) : cache_->bring(coming_);
}

void PlacedRowStore::move_rows() {
  if (cache_) move(moves_);
}

void PlacedRowStore::end_step() {
  if (cache_) cache_->end_step();
}

// Rows that have left lines arrive in host memory before the host reads them there.
void PlacedRowStore::settle() const {
  moved_.synchronize();
}

void PlacedRowStore::exchange(std::span<const RowCache::Move> moves) const {
  if (moves.empty()) return;
  std::vector<std::int64_t> in, out;  // slots
  for (const RowCache::Move& move : moves) {
    if (move.in >= 0) in.push_back(move.in);
    if (move.out >= 0) out.push_back(move.out);
  }
  // Rows from and to a file, in the order of `in` and `out`.
  std::vector<float> coming(file_ ? in.size() * static_cast<std::size_t>(width()) : 0);
  std::vector<float> leaving(file_ ? out.size() * static_cast<std::size_t>(width()) : 0);
  if (file_) file_->read(in, coming.data());
  float *next_in = coming.data(), *next_out = leaving.data();
  const auto place_of = [&](std::int64_t slot, float*& next) -> float* {
    if (slot < 0) return nullptr;
    return file_ ? std::exchange(next, next + width()) : below_.row(slot);
  };
  std::vector<RowLines::Exchange> rows;
  rows.reserve(moves.size());
  for (const RowCache::Move& move : moves)
    rows.push_back({move.line, place_of(move.out, next_out), place_of(move.in, next_in)});
  lines_->exchange(rows);
  moved_.record(lines_->context().stream);
  if (file_) file_->write(out, leaving.data());
  const std::int64_t row_bytes = width() * std::int64_t{sizeof(float)};
  bytes_in_ += std::ssize(in) * row_bytes;
  bytes_out_ += std::ssize(out) * row_bytes;
}

void PlacedRowStore::move(const RowCache::Moves& moves) const {
  below_.grow(directory_.slots());
  const std::span<const RowCache::Move> all = moves.moves;
  const std::size_t block = file_ ? kFileRows : all.size();
  for (std::size_t first = 0; first < all.size(); first += block)
    exchange(all.subspan(first, std::min(block, all.size() - first)));
  if (moves.begin.empty()) return;
  std::vector<std::int64_t> lines, ids;
  for (const RowCache::Begin& begin : moves.begin) {
    lines.push_back(begin.line);
    ids.push_back(directory_.row(begin.slot).id);
  }
  lines_->begin(lines, ids);
}

void PlacedRowStore::flush() const {
  move(cache_->flush());
  settle();
}

void PlacedRowStore::lines_of(std::span<const std::int64_t> slots, std::int64_t* lines) const {
  if (!cache_) {
    if (lines != slots.data()) std::copy(slots.begin(), slots.end(), lines);
    return;
  }
  parallel_blocks(
      static_cast<std::int64_t>(slots.size()), kLookupGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t slot = slots[i];
          const std::int64_t line = slot < 0 ? slot : cache_->line_of(slot);
          lines[i] = slot < 0 || line >= 0 ? line : line == RowCache::kBelow ? kElsewhere : kAbsent;
        }
      });
}

template <typename Use>
void PlacedRowStore::for_rows_below(std::span<const std::int64_t> slots, const Use& use) const {
  settle();
  if (!file_) return for_rows(slots.size(), width(), [&](std::size_t i) { use(i, below_.row(slots[i])); });
  std::vector<float> rows(std::min(kFileRows, slots.size()) * static_cast<std::size_t>(width()));
  for (std::size_t first = 0; first < slots.size(); first += kFileRows) {
    const auto some = slots.subspan(first, std::min(kFileRows, slots.size() - first));
    file_->read(some, rows.data());
    for_rows(some.size(), width(),
             [&](std::size_t i) { use(first + i, rows.data() + static_cast<std::int64_t>(i) * width()); });
  }
}

void PlacedRowStore::read_below(std::span<const std::int64_t> slots, float* values) const {
  for_rows_below(slots, [&](std::size_t i, const float* row) {
    std::copy_n(row, shape_.dim, values + static_cast<std::int64_t>(i) * shape_.dim);
  });
}

void PlacedRowStore::gather(std::span<const std::int64_t> ids, std::span<const std::int64_t> slots,
                            float* out) const {
  std::vector<std::int64_t> lines(slots.size());
  lines_of(slots, lines.data());
  lines_->gather(ids, lines, out);
  if (!cache_) return;
  std::vector<std::int64_t> below, places;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] != kElsewhere) continue;
    below.push_back(slots[i]);
    places.push_back(static_cast<std::int64_t>(i));
  }
  for_rows_below(below, [&](std::size_t i, const float* row) {
    std::copy_n(row, shape_.dim, out + places[i] * shape_.dim);
  });
}

void PlacedRowStore::update(std::span<const std::int64_t> slots, const float* gradients,
                            const RowOptimizer& optimizer, double learning_rate) {
  const std::uint32_t update = directory_.next_update();
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (slots[i] >= 0)
      require(directory_.mark_updated(slots[i], update),
              "expected every row once, found row {} of the update twice", i);
  std::vector<std::int64_t> lines(slots.size());
  lines_of(slots, lines.data());
  for (std::size_t i = 0; i < slots.size(); ++i)
    require(slots[i] < 0 || lines[i] >= 0, "expected rows that the step has looked up, found row {}", i);
  lines_->update(lines, gradients, optimizer, learning_rate);
}

void PlacedRowStore::read(std::span<const std::int64_t> slots, float* values, float* state) const {
  if (!cache_) return read_parts(*lines_, shape_, slots, blocks_, values, state);
  flush();
  const auto take = [&](std::size_t i, const float* row) {
    const auto at = static_cast<std::int64_t>(i);
    if (values != nullptr) std::copy_n(row, shape_.dim, values + at * shape_.dim);
    if (state != nullptr) std::copy_n(row + shape_.dim, shape_.state_width, state + at * shape_.state_width);
  };
  std::vector<std::int64_t> below;
  std::vector<std::size_t> places;
  std::vector<float> begun(static_cast<std::size_t>(width()), 0.0f);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (cache_->line_of(slots[i]) == RowCache::kNowhere) {
      initial_row(shape_.key, directory_.row(slots[i]).id, shape_.initial, shape_.bound, shape_.dim,
                  begun.data(), shape_.first_column);
      take(i, begun.data());
    } else {
      below.push_back(slots[i]);
      places.push_back(i);
    }
  }
  for_rows_below(below, [&](std::size_t i, const float* row) { take(places[i], row); });
}

void PlacedRowStore::import_rows(std::span<const std::int64_t> ids, const float* values, const float* state) {
  std::vector<std::int64_t> slots(ids.size());
  directory_.create_slots(ids, slots.data());
  for (const std::int64_t slot : slots) directory_.row(slot).seen = 0;
  if (!cache_) {
    grow_lines();
    return write_parts(*lines_, shape_, slots, blocks_, values, state);
  }
  settle();  // a slot may be that of a row that left
  cache_->add(slots, RowCache::kBelow);
  below_.grow(directory_.slots());
  std::vector<float> rows(file_ ? slots.size() * static_cast<std::size_t>(width()) : 0);
  for_rows(slots.size(), width(), [&](std::size_t i) {
    const auto from = static_cast<std::int64_t>(i);
    float* const row = file_ ? rows.data() + from * width() : below_.row(slots[i]);
    std::copy_n(values + from * shape_.dim, shape_.dim, row);
    if (shape_.state_width > 0)
      std::copy_n(state + from * shape_.state_width, shape_.state_width, row + shape_.dim);
  });
  if (file_) file_->write(slots, rows.data());
}

CacheCounts PlacedRowStore::counts() const {
  return {cache_->lines(), cache_->hits(), cache_->misses(), cache_->prefetched(), bytes_in_, bytes_out_};
}

}  // namespace hstu
