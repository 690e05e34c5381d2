#include "hstu/embedding/row_limiter.h"

#include <algorithm>
#include <mutex>

#include "hstu/base/error.h"
#include "hstu/base/floor_divide.h"
#include "hstu/base/threads.h"
#include "hstu/embedding/row_score.h"

namespace hstu {
namespace {

constexpr std::int64_t kCellsOfLife = 64;

}  // namespace

RowLimiter::RowLimiter(RowsById& rows, RowDirectory& directory, const RowLimits& limits)
    : store_(rows), rows_(directory), limits_(limits), lowest_(rows_, limits.evict == Evict::lru) {
  rows_.take_created();
}

std::int64_t RowLimiter::cell_of(std::int64_t time) const {
  const std::int64_t width = std::max<std::int64_t>(1, limits_.ttl / kCellsOfLife);
  return floor_divide(time, width);
}

std::int64_t RowLimiter::score_after(std::int64_t score, std::int64_t occurrences, std::int64_t value,
                                     bool is_new) const {
  switch (limits_.evict) {
    case Evict::lfu:
      return score + occurrences;
    case Evict::lru_lfu:
      return add_decayed(score, occurrences, step_ / limits_.half_life);
    case Evict::step:
      return score > 0 ? score : step_;
    case Evict::custom:
      return is_new ? value : std::max(score, value);
    default:
      return 0;
  }
}

void RowLimiter::begin_end(std::int64_t time) {
  lowest_.put_back(leaving_);
  leaving_.clear();
  ++step_;
  require(step_ < HostRow::kNew, "expected fewer than 2^32 - 1 steps");
  time_ = step_ == 1 ? time : std::max(time_, time);
  if (limits_.ttl == 0) return;
  const std::int64_t cell = cell_of(time_);
  // Rows from before the first step count as seen in its cell.
  cell_began_ = history_.empty() || history_.back().first != cell;
  if (cell_began_) history_.emplace_back(cell, history_.empty() ? 0 : step_);
}

void RowLimiter::visit(std::span<const std::int64_t> ids, std::span<const std::int64_t> occurrences,
                       std::span<const std::int64_t> slots, std::span<const std::int64_t> values) {
  require(limits_.evict != Evict::custom || values.size() == ids.size(), "expected {} values, found {}",
          ids.size(), values.size());
  const auto value_of = [&](std::size_t i) { return values.empty() ? 0 : values[i]; };
  std::vector<std::int64_t> found;
  if (slots.size() != ids.size()) {
    found.resize(ids.size());
    rows_.find_slots(ids, found.data());
    slots = found;
  }
  std::mutex mutex;
  std::vector<std::size_t> absent;
  parallel_blocks(
      static_cast<std::int64_t>(ids.size()), kLookupGrain, [&](std::int64_t begin, std::int64_t end) {
        RowCounts counts;
        std::vector<std::size_t> missing;
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          if (i + kPrefetchDistance < static_cast<std::size_t>(end) && slots[i + kPrefetchDistance] >= 0)
            __builtin_prefetch(&rows_.row(slots[i + kPrefetchDistance]), 1);
          if (slots[i] == kNullRow) continue;
          if (slots[i] < 0) {
            missing.push_back(i);
            continue;
          }
          HostRow& row = rows_.row(slots[i]);
          const bool is_new = row.seen == HostRow::kNew;
          if (is_new) {
            ++counts.misses;
            ++counts.inserted;
          } else {
            ++counts.hits;
          }
          row.seen = static_cast<std::uint32_t>(step_);
          row.score = score_after(row.score, occurrences[i], value_of(i), is_new);
          rows_.touch(row);
        }
        const std::scoped_lock lock(mutex);
        counts_.hits += counts.hits;
        counts_.misses += counts.misses + static_cast<std::int64_t>(missing.size());
        counts_.inserted += counts.inserted;
        absent.insert(absent.end(), missing.begin(), missing.end());
      });
  std::sort(absent.begin(), absent.end());
  std::vector<std::int64_t> absent_ids, their_occurrences, their_values;
  for (const std::size_t i : absent) {
    absent_ids.push_back(ids[i]);
    their_occurrences.push_back(occurrences[i]);
    their_values.push_back(value_of(i));
  }
  if (limits_.admit_after > 0) admit(absent_ids, their_occurrences, their_values);
}

void RowLimiter::admit(std::span<const std::int64_t> ids, std::span<const std::int64_t> occurrences,
                       std::span<const std::int64_t> values) {
  std::vector<std::int64_t> admitted, totals, their_values;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t total = waiting_.add(ids[i], occurrences[i], limits_.admit_after);
    if (total < limits_.admit_after) continue;
    admitted.push_back(ids[i]);
    totals.push_back(total);
    their_values.push_back(values[i]);
  }
  std::vector<std::int64_t> slots(admitted.size());
  store_.create_slots(admitted, slots.data());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    HostRow& row = rows_.row(slots[i]);
    row.seen = static_cast<std::uint32_t>(step_);
    row.score = score_after(0, totals[i], their_values[i], true);
  }
  counts_.admitted += static_cast<std::int64_t>(admitted.size());
  counts_.inserted += static_cast<std::int64_t>(admitted.size());
}

void RowLimiter::expire() {
  // The new rows of the step before; this step's are busy.
  if (limits_.evict != Evict::never && !lowest_.scanned())
    for (const RowPlace& place : created_)
      if (rows_.row(place.slot).id == place.id) lowest_.add(place.slot);
  created_.clear();
  std::vector<RowPlace> gone;
  for (const std::int64_t slot : rows_.take_created()) {
    if (rows_.row(slot).seen == HostRow::kNew)
      gone.push_back({rows_.row(slot).id, slot});
    else
      created_.push_back({rows_.row(slot).id, slot});
  }
  rows_.remove(gone);
  if (limits_.ttl == 0 || !cell_began_) return;
  const std::int64_t width = std::max<std::int64_t>(1, limits_.ttl / kCellsOfLife);
  const std::int64_t oldest = history_.back().first - (limits_.ttl + width - 1) / width;
  while (history_.front().first < oldest) history_.pop_front();
  const auto first = static_cast<std::uint32_t>(history_.front().second);
  gone.clear();
  for (std::int64_t slot = 0; slot < rows_.slots(); ++slot) {
    const HostRow& row = rows_.row(slot);
    if (row.id != HostRow::kNoId && row.seen < first) gone.push_back({row.id, slot});
  }
  rows_.remove(gone);
  lowest_.clear();
  counts_.expired += static_cast<std::int64_t>(gone.size());
}

std::vector<RowLimiter::Leaving> RowLimiter::first_to_leave(std::int64_t count, bool ascending) {
  if (limits_.evict == Evict::never) {
    for (const RowPlace& place : created_)
      leaving_.push_back({.order = {-place.id, 0}, .slot = static_cast<std::uint32_t>(place.slot)});
    if (static_cast<std::int64_t>(leaving_.size()) > count) {
      std::nth_element(leaving_.begin(), leaving_.begin() + count, leaving_.end(), LowestRows::leaves_before);
      leaving_.resize(static_cast<std::size_t>(count));
    }
  } else {
    leaving_ = lowest_.take(count, static_cast<std::uint32_t>(step_));
  }
  if (ascending) std::sort(leaving_.begin(), leaving_.end(), LowestRows::leaves_before);
  std::vector<Leaving> leaving;
  leaving.reserve(leaving_.size());
  for (const LowestRows::Row& row : leaving_)
    leaving.push_back({row.busy ? 1 : 0, row.order.score, row.order.id});
  return leaving;
}

void RowLimiter::drop(std::int64_t count) {
  std::vector<RowPlace> gone;
  gone.reserve(static_cast<std::size_t>(count));
  for (const LowestRows::Row& row : std::span(leaving_).first(static_cast<std::size_t>(count)))
    gone.push_back({rows_.row(row.slot).id, row.slot});
  rows_.remove(gone);
  if (limits_.evict == Evict::never) {
    counts_.refused += count;
    counts_.inserted -= count;
    leaving_.clear();
    return;
  }
  counts_.evicted += count;
  leaving_.erase(leaving_.begin(), leaving_.begin() + count);
}

RowLimiter::State RowLimiter::state() const {
  return {step_, time_, {history_.begin(), history_.end()}, counts_};
}

void RowLimiter::restore(const State& state, std::span<const std::int64_t> slots,
                         std::span<const std::int64_t> seen, std::span<const std::int64_t> scores,
                         std::span<const std::int64_t> waiting_ids,
                         std::span<const std::int64_t> waiting_counts) {
  step_ = state.step;
  time_ = state.time;
  history_.assign(state.history.begin(), state.history.end());
  counts_ = state.counts;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    HostRow& row = rows_.row(slots[i]);
    row.seen = static_cast<std::uint32_t>(seen[i]);
    row.score = scores[i];
  }
  for (std::size_t i = 0; i < waiting_ids.size(); ++i)
    waiting_.add(waiting_ids[i], waiting_counts[i], limits_.admit_after);
  rows_.take_created();
}

}  // namespace hstu
