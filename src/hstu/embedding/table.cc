#include "hstu/embedding/table.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/rows/row_record.h"

namespace hstu {
namespace {

void append(const float* row, std::int64_t first, std::int64_t count, std::vector<float>& to) {
  to.insert(to.end(), row + first, row + first + count);
}

}  // namespace

EmbeddingTable::EmbeddingTable(std::shared_ptr<Placement> placement, std::size_t number, TableSpec spec,
                               const Context& where)
    : spec_(std::move(spec)),
      placement_(std::move(placement)),
      number_(number),
      where_(where),
      rows_(placement_->by_id(number)),
      first_size_(config().rows) {
  if (config().limits.any())
    limiter_ = std::make_unique<RowLimiter>(rows_, *spec_.placed.directory, config().limits);
}

namespace {

std::shared_ptr<Placement> placement_alone(const TableSpec& spec, const Context& where) {
  return make_placement(placement_of(spec.config, where.device()), std::span(&spec.placed, 1), where);
}

}  // namespace

EmbeddingTable::EmbeddingTable(const TableConfig& config, const RowOptimizer& optimizer, std::uint64_t seed,
                               const Context& where, const RowOwners& owners)
    : EmbeddingTable(table_spec(config, optimizer, seed, where.device(), owners), where) {}

EmbeddingTable::EmbeddingTable(const TableSpec& spec, const Context& where)
    : EmbeddingTable(placement_alone(spec, where), 0, spec, where) {}

Handles EmbeddingTable::select(std::span<const std::int64_t> ids, RowAccess access) {
  Tensor host_ids = Tensor::empty({std::ssize(ids)}, DType::i64);
  std::copy(ids.begin(), ids.end(), host_ids.mutable_data<std::int64_t>());
  const TableIds list{.table = number_, .ids = host_ids.copy(where_), .host_ids = host_ids};
  try {
    return placement_->select(std::span(&list, 1), access).front();
  } catch (const CacheTooSmall& error) {
    refuse(error);
  }
}

void EmbeddingTable::refuse(const CacheTooSmall& error) const {
  const std::int64_t columns = owners().most_columns(config().dim);
  const std::int64_t bytes = error.rows * record_bytes({.dim = columns,
                                                        .state_width = optimizer().state_width(columns),
                                                        .dtype = config().dtype});
  fail_usage("tables.{}: {}: set {} to {} ({}) at least, or make the batch smaller", config().name,
             error.what(), config().cache_rows == 0 ? "host_memory" : "device_memory", bytes,
             human_bytes(static_cast<double>(bytes)));
}

Tensor EmbeddingTable::gather(const Handles& selected) const {
  Tensor rows = Tensor::empty({selected.ids.size(), width()}, DType::f32, where_);
  gather(selected, rows);
  return rows;
}

void EmbeddingTable::gather(const Handles& selected, Tensor& rows) const {
  placement_->gather(std::span(&selected, 1), std::span(&rows, 1));
}

void EmbeddingTable::update(const Handles& selected, const Tensor& gradients, const RowUpdate& update) {
  placement_->update(std::span(&selected, 1), std::span(&gradients, 1), update);
}

std::int64_t EmbeddingTable::bytes() const {
  return placement_->figures(number_).bytes + (limiter_ ? limiter_->bytes() : 0);
}

void EmbeddingTable::end_step(const Visits& visits, std::int64_t time, Communicator& comm) {
  limiter_->begin_end(time);
  limiter_->visit(visits.ids, visits.occurrences, visits.slots, visits.values);
  limiter_->expire();
  shrink(comm);
}

void EmbeddingTable::shrink(Communicator& comm) {
  const std::int64_t capacity = config().limits.capacity;
  if (capacity == 0) return;
  const bool by_row = owners().by_row();
  const std::int64_t excess = (by_row ? comm.sum(rows_alive()) : rows_alive()) - capacity;
  if (excess <= 0) return;
  const std::vector<RowLimiter::Leaving> mine = limiter_->first_to_leave(excess, by_row);
  if (!by_row) return limiter_->drop(std::ssize(mine));
  std::vector<RowLimiter::Leaving> all = comm.all_gather(std::span<const RowLimiter::Leaving>(mine));
  if (all.empty()) return;
  const auto last = all.begin() + std::min(excess, static_cast<std::int64_t>(all.size())) - 1;
  std::nth_element(all.begin(), last, all.end());
  limiter_->drop(std::upper_bound(mine.begin(), mine.end(), *last) - mine.begin());
}

void EmbeddingTable::read(std::span<const Place> places, float* values, float* state) const {
  std::vector<std::int64_t> slots(places.size());
  std::transform(places.begin(), places.end(), slots.begin(), [](const Place& place) { return place.slot; });
  rows_.read(slots, values, state);
}

void EmbeddingTable::set_first_size(std::int64_t rows) {
  require(rows_alive() == 0, "table \"{}\": expected no rows yet", config().name);
  first_size_ = rows;
  rows_.set_initial_bound(initial_bound(config().initial, rows, config().dim));
}

void EmbeddingTable::restore(std::span<const std::int64_t> ids, const float* values, const float* state) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    check(ids[i] >= 0 && ids[i] < config().rows && (i == 0 || ids[i - 1] < ids[i]),
          "table \"{}\": expected ascending ids from 0 to {}, found id {} at row {}", config().name,
          config().rows - 1, ids[i], i);
  }
  if (!owners().is_distributed()) return rows_.import_rows(ids, values, state);
  const std::int64_t first = owners().first_column(owners().rank, config().dim);
  std::vector<std::int64_t> owned;
  std::vector<float> owned_values, owned_state;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!owners().owns(ids[i])) continue;
    owned.push_back(ids[i]);
    append(values + i * static_cast<std::size_t>(config().dim), first, width(), owned_values);
    if (state == nullptr) continue;
    const float* const from = state + i * static_cast<std::size_t>(state_width());
    const RowOptimizer::StateShape shape = optimizer().state_shape();
    for (std::int64_t b = 0; b < shape.by_column; ++b)
      append(from + b * config().dim, first, width(), owned_state);
    append(from, shape.by_column * config().dim, shape.by_row, owned_state);
  }
  rows_.import_rows(owned, owned_values.data(), state != nullptr ? owned_state.data() : nullptr);
}

void EmbeddingTable::read_history(std::span<const Place> places, std::int64_t* seen,
                                  std::int64_t* scores) const {
  const RowDirectory& rows = *spec_.placed.directory;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const HostRow& row = rows.row(places[i].slot);
    seen[i] = row.seen;
    scores[i] = row.score;
  }
}

void EmbeddingTable::restore_history(const RowLimiter::State& state, std::span<const std::int64_t> ids,
                                     std::span<const std::int64_t> seen, std::span<const std::int64_t> scores,
                                     std::span<const std::int64_t> waiting_ids,
                                     std::span<const std::int64_t> waiting_counts) {
  std::vector<std::int64_t> owned, their_seen, their_scores, waiting, their_counts;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!owners().owns(ids[i])) continue;
    owned.push_back(ids[i]);
    their_seen.push_back(seen[i]);
    their_scores.push_back(scores[i]);
  }
  for (std::size_t i = 0; i < waiting_ids.size(); ++i) {
    if (!owners().owns(waiting_ids[i])) continue;
    waiting.push_back(waiting_ids[i]);
    their_counts.push_back(waiting_counts[i]);
  }
  RowLimiter::State mine = state;
  if (owners().by_row() && owners().rank != 0) mine.counts = {};  // they will be added up
  std::vector<std::int64_t> slots(owned.size());
  spec_.placed.directory->find_slots(owned, slots.data());
  limiter_->restore(mine, slots, their_seen, their_scores, waiting, their_counts);
}

}  // namespace hstu
