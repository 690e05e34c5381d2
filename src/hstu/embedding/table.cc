#include "hstu/embedding/table.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/base/text.h"
#include "hstu/rows/device_rows.h"
#include "hstu/rows/host_row_store.h"
#include "hstu/rows/row_record.h"

namespace hstu {
namespace {

void check_config(const TableConfig& config, const RowOptimizer& optimizer) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  if (config.name.empty() || config.name.front() == '.' ||
      config.name.find_first_not_of(kAllowed) != std::string::npos) {
    fail_usage("embedding table \"{}\": expected a name of letters, digits, '_', '-' and '.'", config.name);
  }
  if (config.rows < 1)
    fail_usage("embedding table \"{}\": expected rows >= 1, found {}", config.name, config.rows);
  if (config.dim < 1)
    fail_usage("embedding table \"{}\": expected dim >= 1, found {}", config.name, config.dim);
  const auto rate = [](double x) { return x >= 0.0 && x < 1.0; };
  if (!(optimizer.epsilon > 0.0) || !rate(optimizer.beta1) || !rate(optimizer.beta2)) {
    fail_usage("optimizer of embedding tables: expected epsilon > 0 and betas in [0, 1), found {}, {} and {}",
               optimizer.epsilon, optimizer.beta1, optimizer.beta2);
  }
}

void append(const float* row, std::int64_t first, std::int64_t count, std::vector<float>& to) {
  to.insert(to.end(), row + first, row + first + count);
}

std::unique_ptr<RowStore> make_store(const TableConfig& config, const RowShape& shape, const Context& where) {
  const bool on_host = where.device().is_host();
  const CacheSize grows{.lines = grown_lines(shape, 0), .grows = true}, fixed{.lines = config.cache_rows};
  if (config.place == TablePlace::disk) {
    auto file = std::make_unique<RowFile>(config.disk_folder, stored_floats(shape));
    if (on_host && config.cache_rows == 0)
      return std::make_unique<PlacedRowStore>(shape, where, CacheSize{.lines = config.host_rows},
                                              std::move(file));
    return std::make_unique<PlacedRowStore>(shape, where, config.cache_rows > 0 ? fixed : grows,
                                            std::move(file), config.host_rows);
  }
  if (config.cache_rows > 0) return std::make_unique<PlacedRowStore>(shape, where, fixed);
  if (!on_host && config.place == TablePlace::host)
    return std::make_unique<PlacedRowStore>(shape, where, grows);
  if (!on_host && config.limits.any()) return std::make_unique<PlacedRowStore>(shape, where, CacheSize{});
  if (on_host) return std::make_unique<HostRowStore>(shape);
  return cuda::make_row_store(shape, where);
}

}  // namespace

EmbeddingTable::EmbeddingTable(TableConfig config, RowOptimizer optimizer, std::uint64_t seed,
                               const Context& where, const RowOwners& owners)
    : config_((check_config(config, optimizer), std::move(config))),
      optimizer_(optimizer),
      key_(derive_key(seed, "table:" + config_.name)),
      owners_(owners) {
  if (config_.optimizer) optimizer_.kind = *config_.optimizer;
  const RowShape shape{.rows = config_.rows,
                       .dim = width(),
                       .state_width = stored_state_width(),
                       .key = key_,
                       .bound = initial_bound(config_.initial, config_.rows, config_.dim),
                       .initial = config_.initial,
                       .first_column = owners_.first_column(owners_.rank, config_.dim),
                       .dtype = config_.dtype};
  store_ = make_store(config_, shape, where);
  placed_ = dynamic_cast<PlacedRowStore*>(store_.get());
  if (config_.limits.any()) keeper_ = std::make_unique<RowKeeper>(*store_, config_.limits);
}

void EmbeddingTable::find_slots(std::span<const std::int64_t> ids, RowAccess access, std::int64_t* slots) {
  if (placed_ != nullptr && access == RowAccess::train) {
    std::vector<std::int64_t> lines(ids.size());
    return find_lines(ids, access, slots, lines.data());
  }
  if (creates(access))
    store_->create_slots(ids, slots);
  else
    store_->find_slots(ids, slots);
}

void EmbeddingTable::find_lines(std::span<const std::int64_t> ids, RowAccess access, std::int64_t* slots,
                                std::int64_t* lines) {
  if (access == RowAccess::read) {
    placed_->find_slots(ids, slots);
    return placed_->lines_of(std::span(slots, ids.size()), lines);
  }
  try {
    placed_->use(ids, creates(access), slots, lines);
  } catch (const CacheTooSmall& error) {
    const std::int64_t columns = owners_.most_columns(config_.dim);
    const std::int64_t bytes = error.rows * record_bytes({.dim = columns,
                                                          .state_width = optimizer_.state_width(columns),
                                                          .dtype = config_.dtype});
    fail_usage("tables.{}: {}: set {} to {} ({}) at least, or make the batch smaller", config_.name,
               error.what(), config_.cache_rows == 0 ? "host_memory" : "device_memory", bytes,
               human_bytes(static_cast<double>(bytes)));
  }
}

void EmbeddingTable::update(std::span<const std::int64_t> slots, const float* gradients,
                            double learning_rate) {
  try {
    store_->update(slots, gradients, optimizer_, learning_rate);
  } catch (const InternalError& error) {
    throw InternalError(fmt::format("table \"{}\": {}", config_.name, error.what()));
  }
}

void EmbeddingTable::read(std::span<const Place> places, float* values, float* state) const {
  std::vector<std::int64_t> slots(places.size());
  std::transform(places.begin(), places.end(), slots.begin(), [](const Place& place) { return place.slot; });
  store_->read(slots, values, state);
}

void EmbeddingTable::restore(std::span<const std::int64_t> ids, const float* values, const float* state) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    check(ids[i] >= 0 && ids[i] < config_.rows && (i == 0 || ids[i - 1] < ids[i]),
          "table \"{}\": expected ascending ids from 0 to {}, found id {} at row {}", config_.name,
          config_.rows - 1, ids[i], i);
  }
  if (!owners_.moves()) return store_->import_rows(ids, values, state);
  const std::int64_t first = owners_.first_column(owners_.rank, config_.dim);
  std::vector<std::int64_t> owned;
  std::vector<float> owned_values, owned_state;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!owners_.owns(ids[i])) continue;
    owned.push_back(ids[i]);
    append(values + i * static_cast<std::size_t>(config_.dim), first, width(), owned_values);
    if (state == nullptr) continue;
    const float* const from = state + i * static_cast<std::size_t>(state_width());
    const RowOptimizer::StateShape shape = optimizer_.state_shape();
    for (std::int64_t b = 0; b < shape.by_column; ++b)
      append(from + b * config_.dim, first, width(), owned_state);
    append(from, shape.by_column * config_.dim, shape.by_row, owned_state);
  }
  store_->import_rows(owned, owned_values.data(), state != nullptr ? owned_state.data() : nullptr);
}

void EmbeddingTable::read_history(std::span<const Place> places, std::int64_t* seen,
                                  std::int64_t* scores) const {
  const RowDirectory& rows = *store_->directory();
  for (std::size_t i = 0; i < places.size(); ++i) {
    const HostRow& row = rows.row(places[i].slot);
    seen[i] = row.seen;
    scores[i] = row.score;
  }
}

void EmbeddingTable::restore_history(const RowKeeper::State& state, std::span<const std::int64_t> ids,
                                     std::span<const std::int64_t> seen, std::span<const std::int64_t> scores,
                                     std::span<const std::int64_t> waiting_ids,
                                     std::span<const std::int64_t> waiting_counts) {
  std::vector<std::int64_t> owned, their_seen, their_scores, waiting, their_counts;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!owners_.owns(ids[i])) continue;
    owned.push_back(ids[i]);
    their_seen.push_back(seen[i]);
    their_scores.push_back(scores[i]);
  }
  for (std::size_t i = 0; i < waiting_ids.size(); ++i) {
    if (!owners_.owns(waiting_ids[i])) continue;
    waiting.push_back(waiting_ids[i]);
    their_counts.push_back(waiting_counts[i]);
  }
  RowKeeper::State mine = state;
  if (owners_.by_row() && owners_.rank != 0) mine.counts = {};  // they will be added up
  keeper_->restore(mine, slots(owned, RowAccess::read), their_seen, their_scores, waiting, their_counts);
}

}  // namespace hstu
