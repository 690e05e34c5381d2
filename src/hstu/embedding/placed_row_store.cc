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

}  // namespace

PlacedRowStore::PlacedRowStore(const RowShape& shape, const Context& where, CacheSize cache)
    : shape_(shape),
      size_(cache),
      directory_(shape.rows),
      lines_(make_row_lines(shape, where)),
      below_(cache.lines > 0 ? below_width(shape) : 0, transfer_memory(where.device()),
             std::min(kPinnedChunk, shape.rows * below_width(shape) * std::int64_t{sizeof(float)})),
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
  if (directory_.follows_changes()) {
    for_rows(slots.size(), width(), [&](std::size_t i) {
      if (slots[i] >= 0) directory_.touch(directory_.row(slots[i]));
    });
  }
  if (!cache_) return;
  try {
    move(cache_->use(slots));
  } catch (const CacheTooSmall& error) {
    if (!size_.grows) throw;
    const std::int64_t lines = error.rows + error.rows / 8;
    cache_->grow(lines);
    lines_->grow(lines);
    move(cache_->use(slots));
  }
}

void PlacedRowStore::prefetch(std::span<const std::int64_t> ids) {
  if (!cache_) return;
  std::vector<std::int64_t> slots(ids.size());
  directory_.find_slots(ids, slots.data());
  move(cache_->prefetch(slots));
}

void PlacedRowStore::end_step() {
  if (cache_) cache_->end_step();
}

// Rows that have left lines arrive in host memory before the host reads them there.
void PlacedRowStore::settle() const {
  moved_.synchronize();
}

void PlacedRowStore::move(const RowCache::Moves& moves) const {
  below_.grow(directory_.slots());
  std::vector<RowLines::Exchange> rows;
  rows.reserve(moves.moves.size());
  std::int64_t in = 0, out = 0;
  for (const RowCache::Move& move : moves.moves) {
    rows.push_back({move.line, move.out < 0 ? nullptr : below_.row(move.out),
                    move.in < 0 ? nullptr : below_.row(move.in)});
    in += move.in < 0 ? 0 : 1;
    out += move.out < 0 ? 0 : 1;
  }
  const std::int64_t row_bytes = width() * std::int64_t{sizeof(float)};
  bytes_in_ += in * row_bytes;
  bytes_out_ += out * row_bytes;
  if (!rows.empty()) {
    lines_->exchange(rows);
    moved_.record(lines_->context().stream);
  }
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

void PlacedRowStore::read_below(std::span<const std::int64_t> slots, float* values) const {
  settle();
  for_rows(slots.size(), shape_.dim, [&](std::size_t i) {
    std::copy_n(below_.row(slots[i]), shape_.dim, values + static_cast<std::int64_t>(i) * shape_.dim);
  });
}

void PlacedRowStore::gather(std::span<const std::int64_t> ids, std::span<const std::int64_t> slots,
                            float* out) const {
  std::vector<std::int64_t> lines(slots.size());
  lines_of(slots, lines.data());
  lines_->gather(ids, lines, out);
  if (!cache_) return;
  settle();
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i] == kElsewhere)
      std::copy_n(below_.row(slots[i]), shape_.dim, out + static_cast<std::int64_t>(i) * shape_.dim);
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
  for_rows(slots.size(), width(), [&](std::size_t i) {
    const auto at = static_cast<std::int64_t>(i);
    std::vector<float> begun;
    const float* row = nullptr;
    if (cache_->line_of(slots[i]) == RowCache::kNowhere) {
      begun.assign(static_cast<std::size_t>(width()), 0.0f);
      initial_row(shape_.key, directory_.row(slots[i]).id, shape_.initial, shape_.bound, shape_.dim,
                  begun.data(), shape_.first_column);
      row = begun.data();
    } else {
      row = below_.row(slots[i]);
    }
    if (values != nullptr) std::copy_n(row, shape_.dim, values + at * shape_.dim);
    if (state != nullptr) std::copy_n(row + shape_.dim, shape_.state_width, state + at * shape_.state_width);
  });
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
  for_rows(slots.size(), width(), [&](std::size_t i) {
    const auto from = static_cast<std::int64_t>(i);
    float* const row = below_.row(slots[i]);
    std::copy_n(values + from * shape_.dim, shape_.dim, row);
    if (shape_.state_width > 0)
      std::copy_n(state + from * shape_.state_width, shape_.state_width, row + shape_.dim);
  });
}

CacheCounts PlacedRowStore::counts() const {
  return {cache_->lines(), cache_->hits(), cache_->misses(), cache_->prefetched(), bytes_in_, bytes_out_};
}

}  // namespace hstu
