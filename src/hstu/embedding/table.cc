#include "hstu/embedding/table.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string_view>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/base/threads.h"
#include "hstu/embedding/initial_value.h"

namespace hstu {
namespace {

constexpr std::int64_t kPrefetchDistance = 8;
constexpr std::int64_t kIndexGrain = 4096;  // ids a block of pure index work

// Ids a block of work on whole rows: about 64 KiB of row data.
std::int64_t row_grain(std::int64_t dim) {
  return std::max<std::int64_t>(16, 16384 / dim);
}

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

}  // namespace

EmbeddingTable::EmbeddingTable(TableConfig config, RowOptimizer optimizer, std::uint64_t seed)
    : config_((check_config(config, optimizer), std::move(config))),
      optimizer_(optimizer),
      key_(derive_key(seed, "table:" + config_.name)),
      bound_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(config_.rows)))),
      values_(config_.dim),
      state_(optimizer.state_width(config_.dim)) {}

void EmbeddingTable::initialise(std::int64_t id, float* out) const {
  initial_row(key_, id, bound_, config_.dim, out);
}

std::vector<std::int64_t> EmbeddingTable::slots_for_training(std::span<const std::int64_t> ids) {
  const auto n = static_cast<std::int64_t>(ids.size());
  std::vector<std::int64_t> slots(ids.size());
  parallel_blocks(n, kIndexGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (i + kPrefetchDistance < end) index_.prefetch(ids[i + kPrefetchDistance]);
      slots[i] = in_range(ids[i]) ? index_.find(ids[i]) : RowIndex::kAbsent;
    }
  });

  // Insertion is serial, in the order of the ids, so that slots do not depend on the number of threads.
  const std::int64_t first_new = index_.size();
  std::vector<std::int64_t> new_ids;
  for (std::int64_t i = 0; i < n; ++i) {
    if (slots[i] != RowIndex::kAbsent || !in_range(ids[i])) continue;
    slots[i] = index_.find_or_insert(ids[i]);
    if (slots[i] == first_new + static_cast<std::int64_t>(new_ids.size())) new_ids.push_back(ids[i]);
  }
  if (new_ids.empty()) return slots;

  values_.grow(index_.size());
  state_.grow(index_.size());
  last_update_.resize(static_cast<std::size_t>(index_.size()), 0);
  parallel_blocks(static_cast<std::int64_t>(new_ids.size()), row_grain(config_.dim),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i)
                      initialise(new_ids[i], values_.row(first_new + i));
                  });
  return slots;
}

void EmbeddingTable::lookup_for_training(std::span<const std::int64_t> ids, float* out) {
  const std::vector<std::int64_t> slots = slots_for_training(ids);
  const std::int64_t dim = config_.dim;
  parallel_blocks(static_cast<std::int64_t>(ids.size()), row_grain(dim),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      if (slots[i] == RowIndex::kAbsent)
                        std::fill_n(out + i * dim, dim, 0.0f);
                      else
                        std::copy_n(std::as_const(values_).row(slots[i]), dim, out + i * dim);
                    }
                  });
}

void EmbeddingTable::lookup(std::span<const std::int64_t> ids, float* out) const {
  const std::int64_t dim = config_.dim;
  parallel_blocks(static_cast<std::int64_t>(ids.size()), row_grain(dim),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      if (i + kPrefetchDistance < end) index_.prefetch(ids[i + kPrefetchDistance]);
                      float* row = out + i * dim;
                      if (!in_range(ids[i])) {
                        std::fill_n(row, dim, 0.0f);
                      } else if (const std::int64_t slot = index_.find(ids[i]); slot != RowIndex::kAbsent) {
                        std::copy_n(values_.row(slot), dim, row);
                      } else {
                        initialise(ids[i], row);
                      }
                    }
                  });
}

void EmbeddingTable::apply_gradients(std::span<const std::int64_t> ids, const float* gradients,
                                     double learning_rate) {
  const std::vector<std::int64_t> slots = slots_for_training(ids);
  const std::int64_t dim = config_.dim;
  const std::uint32_t update = ++updates_;
  parallel_blocks(
      static_cast<std::int64_t>(ids.size()), row_grain(dim), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t slot = slots[i];
          if (slot == RowIndex::kAbsent) continue;
          // An exchange, because two threads may hold the two places of an id that stands twice.
          const std::uint32_t last = std::atomic_ref(last_update_[static_cast<std::size_t>(slot)])
                                         .exchange(update, std::memory_order_relaxed);
          require(last != update, "table \"{}\": expected every id once, found id {} twice", config_.name,
                  ids[i]);
          optimizer_.update(learning_rate, dim, gradients + i * dim, values_.row(slot), state_.row(slot));
        }
      });
}

std::int64_t EmbeddingTable::bytes() const {
  return values_.bytes() + state_.bytes() + index_.bytes() +
         static_cast<std::int64_t>(last_update_.capacity() * sizeof(std::uint32_t));
}

std::int64_t EmbeddingTable::inserted() const {
  return rows_alive() - restored_;
}

std::vector<EmbeddingTable::Row> EmbeddingTable::rows_by_id() const {
  std::vector<Row> rows;
  rows.reserve(static_cast<std::size_t>(rows_alive()));
  index_.for_each([&](std::int64_t id, std::int64_t slot) {
    rows.push_back({id, values_.row(slot), state_.row(slot)});
  });
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.id < b.id; });
  return rows;
}

void EmbeddingTable::restore(std::span<const std::int64_t> ids, const float* values, const float* state) {
  require(rows_alive() == 0, "table \"{}\": expected an empty table, found {} rows", config_.name,
          rows_alive());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    check(in_range(ids[i]) && (i == 0 || ids[i - 1] < ids[i]),
          "table \"{}\": expected ascending ids from 0 to {}, found id {} at row {}", config_.name,
          config_.rows - 1, ids[i], i);
  }
  slots_for_training(ids);  // Gives id i the slot i: the table was empty and the ids are distinct.
  restored_ = rows_alive();
  const std::int64_t dim = config_.dim, width = state_.width();
  parallel_blocks(static_cast<std::int64_t>(ids.size()), row_grain(dim),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      std::copy_n(values + i * dim, dim, values_.row(i));
                      if (width > 0) std::copy_n(state + i * width, width, state_.row(i));
                    }
                  });
}

}  // namespace hstu
