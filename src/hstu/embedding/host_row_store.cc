#include "hstu/embedding/host_row_store.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "hstu/base/error.h"
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

}  // namespace

std::int64_t HostRowStore::bytes() const {
  return values_.bytes() + state_.bytes() + heads_.bytes() + index_.bytes() +
         static_cast<std::int64_t>(free_.capacity() * sizeof(std::uint32_t));
}

void HostRowStore::find_slots(std::span<const std::int64_t> ids, std::int64_t* slots) const {
  static_assert(SlotIndex::kAbsent == kAbsent);
  const auto hash_of = [](std::int64_t id) { return mix64(static_cast<std::uint64_t>(id)); };
  parallel_blocks(static_cast<std::int64_t>(ids.size()), kIndexGrain,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      if (i + 2 * kPrefetchDistance < end)
                        index_.prefetch(hash_of(ids[i + 2 * kPrefetchDistance]));
                      if (i + kPrefetchDistance < end) {
                        const std::int64_t likely = index_.likely(hash_of(ids[i + kPrefetchDistance]));
                        if (likely >= 0) __builtin_prefetch(&heads_[likely]);
                      }
                      slots[i] = find(ids[i]);
                    }
                  });
}

void HostRowStore::create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) {
  find_slots(ids, slots);
  // Insertion is serial, in the order of the ids, so that slots do not depend on the number of threads.
  std::vector<std::int64_t> created;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (slots[i] != kAbsent) continue;
    if (!created.empty() && (slots[i] = find(ids[i])) != kAbsent) continue;  // it occurs twice
    if (free_.empty()) {
      slots[i] = slots_++;
      heads_.grow(slots_);
    } else {
      slots[i] = free_.back();
      free_.pop_back();
    }
    index_.insert(mix64(static_cast<std::uint64_t>(ids[i])), slots[i]);
    heads_[slots[i]] = {.id = ids[i]};
    created.push_back(slots[i]);
  }
  if (created.empty()) return;
  if (records_created_) created_.insert(created_.end(), created.begin(), created.end());

  values_.grow(slots_);
  state_.grow(slots_);
  parallel_blocks(static_cast<std::int64_t>(created.size()), row_grain(shape_.dim),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      const std::int64_t slot = created[static_cast<std::size_t>(i)];
                      initial_row(shape_.key, heads_[slot].id, shape_.initial, shape_.bound, shape_.dim,
                                  values_.row(slot));
                      if (shape_.state_width > 0) std::fill_n(state_.row(slot), shape_.state_width, 0.0f);
                    }
                  });
}

void HostRowStore::remove(std::span<const Place> rows) {
  const auto hash_of = [](std::int64_t id) { return mix64(static_cast<std::uint64_t>(id)); };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i + kPrefetchDistance < rows.size()) {
      index_.prefetch(hash_of(rows[i + kPrefetchDistance].id));
      __builtin_prefetch(&heads_[rows[i + kPrefetchDistance].slot], 1);
    }
    index_.erase(hash_of(rows[i].id), rows[i].slot);
    heads_[rows[i].slot] = {};
    free_.push_back(static_cast<std::uint32_t>(rows[i].slot));
  }
}

std::vector<std::int64_t> HostRowStore::take_created() {
  records_created_ = true;
  return std::exchange(created_, {});
}

void HostRowStore::gather(std::span<const std::int64_t> ids, std::span<const std::int64_t> slots,
                          float* out) const {
  const std::int64_t dim = shape_.dim;
  parallel_blocks(static_cast<std::int64_t>(slots.size()), row_grain(dim),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      const std::int64_t slot = slots[i];
                      if (slot == kNull)
                        std::fill_n(out + i * dim, dim, 0.0f);
                      else if (slot == kAbsent)
                        initial_row(shape_.key, ids[i], shape_.initial, shape_.bound, dim, out + i * dim);
                      else
                        std::copy_n(values_.row(slot), dim, out + i * dim);
                    }
                  });
}

void HostRowStore::update(std::span<const std::int64_t> slots, const float* gradients,
                          const RowOptimizer& optimizer, double learning_rate) {
  const std::int64_t dim = shape_.dim;
  const std::uint32_t update = ++updates_;
  parallel_blocks(
      static_cast<std::int64_t>(slots.size()), row_grain(dim), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t slot = slots[i];
          if (slot < 0) continue;
          // An exchange, because two threads may hold the two places of a slot that occurs twice.
          const std::uint32_t last =
              std::atomic_ref(heads_[slot].updated).exchange(update, std::memory_order_relaxed);
          require(last != update, "expected every row once, found row {} of the update twice", i);
          optimizer.update(learning_rate, dim, gradients + i * dim, values_.row(slot), state_.row(slot));
        }
      });
}

std::vector<RowStore::Place> HostRowStore::places_by_id() const {
  std::vector<Place> places;
  places.reserve(static_cast<std::size_t>(rows()));
  for (std::int64_t slot = 0; slot < slots_; ++slot)
    if (heads_[slot].id != HostRow::kNoId) places.push_back({heads_[slot].id, slot});
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.id < b.id; });
  return places;
}

void HostRowStore::read(std::span<const std::int64_t> slots, float* values, float* state) const {
  const std::int64_t dim = shape_.dim, width = shape_.state_width;
  parallel_blocks(static_cast<std::int64_t>(slots.size()), row_grain(dim),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      if (values != nullptr) std::copy_n(values_.row(slots[i]), dim, values + i * dim);
                      if (state != nullptr && width > 0)
                        std::copy_n(state_.row(slots[i]), width, state + i * width);
                    }
                  });
}

void HostRowStore::import_rows(std::span<const std::int64_t> ids, const float* values, const float* state) {
  std::vector<std::int64_t> slots(ids.size());
  create_slots(ids, slots.data());
  const std::int64_t dim = shape_.dim, width = shape_.state_width;
  parallel_blocks(static_cast<std::int64_t>(ids.size()), row_grain(dim),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      const std::int64_t slot = slots[static_cast<std::size_t>(i)];
                      heads_[slot].seen = 0;
                      std::copy_n(values + i * dim, dim, values_.row(slot));
                      if (width > 0) std::copy_n(state + i * width, width, state_.row(slot));
                    }
                  });
}

}  // namespace hstu
