#include "hstu/rows/tiered_row_store.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"

namespace hstu {
TieredRowStore::TieredRowStore(const PlacedTable& table, RowLines& lines, const Context& where)
    : shape_(table.shape),
      format_(shape_),
      size_(table.tiers.cache),
      rows_(table.directory != nullptr ? table.directory : std::make_shared<RowDirectory>(shape_.rows)),
      directory_(*rows_),
      lines_(lines),
      blocks_(where.stream) {
  if (size_.lines == 0) return;
  cache_.emplace(directory_, size_.lines);
  lines_.grow(size_.lines);
  exchange_ = std::make_unique<LineExchange>(lines_, where);
  const auto& [_, disk_folder, host_rows] = table.tiers;
  if (!disk_folder) {
    below_ = rows_in_memory(shape_, directory_, where.device(), *exchange_);
    return;
  }
  auto file = std::make_unique<RowFile>(*disk_folder, stored_floats(shape_));
  if (host_rows == 0 && where.device().is_host())
    below_ = rows_in_file(std::move(file), *exchange_);
  else
    below_ = rows_in_cached_file(std::move(file), host_rows, directory_, where.device(), *exchange_);
}

std::int64_t TieredRowStore::bytes() const {
  return directory_.bytes() + lines_.bytes() + (cache_ ? cache_->bytes() + below_->bytes() : 0);
}

void TieredRowStore::create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) {
  const std::vector<std::int64_t> created = directory_.create_slots(ids, slots);
  if (created.empty()) return;
  if (cache_) {
    cache_->add(created, RowCache::kNowhere);
    return below_->add(created);
  }
  std::vector<std::int64_t> new_ids;
  new_ids.reserve(created.size());
  for (const std::int64_t slot : created) new_ids.push_back(directory_.row(slot).id);
  grow_lines();
  lines_.begin(created, new_ids);
}

void TieredRowStore::set_initial_bound(float bound) {
  format_.set_initial_bound(bound);
  lines_.set_initial_bound(bound);
}

// An eighth more, so that a growing table does not get memory in every step.
void TieredRowStore::grow_lines() {
  if (directory_.slots() <= room_) return;
  room_ = directory_.slots() + directory_.slots() / 8;
  lines_.grow(room_);
}

// look(first, slots, found) for blocks of `ids`, whose slots it finds: an id is hashed, found and looked at
// while what belongs to it is in the processor's cache.
template <typename Look>
RowCache::Found TieredRowStore::look_up(std::span<const std::int64_t> ids, std::int64_t* slots,
                                        const Look& look) const {
  const auto n = std::ssize(ids);
  std::vector<RowCache::Found> of_block(static_cast<std::size_t>((n + kLookupGrain - 1) / kLookupGrain));
  parallel_blocks(n, kLookupGrain, [&](std::int64_t begin, std::int64_t end) {
    directory_.find_some(ids.subspan(begin, end - begin), slots + begin);
    look(begin, std::span<const std::int64_t>(slots + begin, slots + end),
         of_block[static_cast<std::size_t>(begin / kLookupGrain)]);
  });
  return RowCache::Found::of(of_block);
}

void TieredRowStore::use(std::span<const std::int64_t> ids, bool creates, std::int64_t* slots,
                         std::int64_t* lines) {
  std::atomic<bool> any_absent = false;
  const RowCache::Found found = look_up(
      ids, slots, [&](std::int64_t first, std::span<const std::int64_t> some, RowCache::Found& of_block) {
        if (directory_.follows_changes()) touch(some);
        if (cache_)
          cache_->pin(some, first, lines + first, of_block);
        else
          std::copy(some.begin(), some.end(), lines + first);
        for (std::size_t i = 0; creates && i < some.size(); ++i) {
          if (some[i] != kAbsentRow) continue;
          of_block.missing.push_back(first + static_cast<std::int64_t>(i));
          any_absent = true;
        }
      });
  if (cache_) cache_->count(found);
  if (any_absent) create_absent(ids, found.missing, slots);
  const std::vector<std::int64_t> missing = slots_at(found.missing, {slots, ids.size()});
  if (cache_) {
    make_room(std::ssize(missing));
    move(cache_->bring(missing), Pace::fast);
  }
  parallel_blocks(std::ssize(missing), kLookupGrain, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      lines[found.missing[i]] = cache_ ? cache_->line_of(missing[i]) : missing[i];
  });
}

void TieredRowStore::touch(std::span<const std::int64_t> slots) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (i + kPrefetchDistance < slots.size() && slots[i + kPrefetchDistance] >= 0)
      __builtin_prefetch(&directory_.row(slots[i + kPrefetchDistance]), 1);
    if (slots[i] >= 0) directory_.touch(directory_.row(slots[i]));
  }
}

// Of the ids at `places`, those that have no row get one.
void TieredRowStore::create_absent(std::span<const std::int64_t> ids, std::span<const std::int64_t> places,
                                   std::int64_t* slots) {
  std::vector<std::int64_t> absent, new_ids;
  for (const std::int64_t place : places) {
    if (slots[place] != kAbsentRow) continue;
    absent.push_back(place);
    new_ids.push_back(ids[static_cast<std::size_t>(place)]);
  }
  std::vector<std::int64_t> created(absent.size());
  create_slots(new_ids, created.data());
  for (std::size_t i = 0; i < absent.size(); ++i) slots[absent[i]] = created[i];
}

void TieredRowStore::make_room(std::int64_t rows) {
  try {
    cache_->check_room(rows);
  } catch (const CacheTooSmall& error) {
    if (!size_.grows) throw;
    const std::int64_t lines = grown_lines(shape_, error.rows);
    cache_->grow(lines);
    lines_.grow(lines);
  }
}

void TieredRowStore::prefetch(std::span<const std::int64_t> ids) {
  if (!cache_) return;
  std::vector<std::int64_t> slots(ids.size());
  const RowCache::Found found =
      look_up(ids, slots.data(),
              [&](std::int64_t first, std::span<const std::int64_t> some, RowCache::Found& of_block) {
                cache_->pin_next(some, first, of_block);
              });
  cache_->count(found);
  const std::vector<std::int64_t> missing = slots_at(found.missing, slots);
  const RowCache::Moves& moves = cache_->bring_next(missing);
  // First, because it may wait for rows that are on their way.
  below_->prefetch(std::span(missing).subspan(moves.moves.size()));
  move(moves, Pace::beside);
}

void TieredRowStore::end_step() {
  if (cache_) cache_->end_step();
}

void TieredRowStore::move(const RowCache::Moves& moves, Pace pace) const {
  if (!moves.moves.empty()) below_->move(moves.moves, pace);
  if (moves.begin.empty()) return;
  std::vector<std::int64_t> lines, ids;
  for (const RowCache::Begin& begin : moves.begin) {
    lines.push_back(begin.line);
    ids.push_back(directory_.row(begin.slot).id);
  }
  lines_.begin(lines, ids);
}

void TieredRowStore::flush() const {
  move(cache_->flush(), Pace::fast);
}

void TieredRowStore::find(std::span<const std::int64_t> ids, std::int64_t* slots, std::int64_t* lines) const {
  directory_.find_slots(ids, slots);
  lines_of({slots, ids.size()}, lines);
}

void TieredRowStore::lines_of(std::span<const std::int64_t> slots, std::int64_t* lines) const {
  if (!cache_) {
    if (lines != slots.data()) std::copy(slots.begin(), slots.end(), lines);
    return;
  }
  parallel_blocks(
      static_cast<std::int64_t>(slots.size()), kLookupGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t slot = slots[i];
          const std::int64_t line = slot < 0 ? slot : cache_->line_of(slot);
          lines[i] = slot < 0 || line >= 0 ? line : line == RowCache::kBelow ? kElsewhere : kAbsentRow;
        }
      });
}

void TieredRowStore::read_below(std::span<const std::int64_t> slots, float* values) const {
  below_->read(slots, [&](std::size_t i, const float* row) {
    format_.load(row, values + static_cast<std::int64_t>(i) * shape_.dim);
  });
}

void TieredRowStore::read(std::span<const std::int64_t> slots, float* values, float* state) const {
  if (!cache_) return read_parts(lines_, shape_, slots, blocks_, values, state);
  flush();
  std::vector<std::int64_t> below;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (cache_->line_of(slots[i]) != RowCache::kNowhere) {
      below.push_back(slots[i]);
      places.push_back(i);
      continue;
    }
    const auto at = static_cast<std::int64_t>(i);
    if (state != nullptr) std::fill_n(state + at * shape_.state_width, shape_.state_width, 0.0f);
    if (values == nullptr) continue;
    format_.begin(directory_.row(slots[i]).id, values + at * shape_.dim);
  }
  below_->read(below, [&](std::size_t i, const float* row) {
    const auto at = static_cast<std::int64_t>(places[i]);
    if (values != nullptr) format_.load(row, values + at * shape_.dim);
    if (state != nullptr)
      std::copy_n(row + state_begin(shape_), shape_.state_width, state + at * shape_.state_width);
  });
}

void TieredRowStore::import_rows(std::span<const std::int64_t> ids, const float* values, const float* state) {
  std::vector<std::int64_t> slots(ids.size());
  directory_.create_slots(ids, slots.data());
  for (const std::int64_t slot : slots) directory_.row(slot).seen = 0;
  if (!cache_) {
    grow_lines();
    return write_parts(lines_, shape_, slots, blocks_, values, state);
  }
  cache_->add(slots, RowCache::kBelow);
  below_->write(slots, [&](std::size_t i, float* row) {
    const auto from = static_cast<std::int64_t>(i);
    format_.store(values + from * shape_.dim, row);
    if (shape_.state_width > 0)
      std::copy_n(state + from * shape_.state_width, shape_.state_width, row + state_begin(shape_));
  });
}

CacheCounts TieredRowStore::counts() const {
  if (const auto counts = below_->counts()) return *counts;
  const std::int64_t bytes = stored_floats(shape_) * std::int64_t{sizeof(float)};
  const std::int64_t came = cache_->misses() + cache_->prefetched();
  return {cache_->lines(),      cache_->hits(), cache_->misses(),
          cache_->prefetched(), came * bytes,   cache_->left() * bytes};
}

}  // namespace hstu
