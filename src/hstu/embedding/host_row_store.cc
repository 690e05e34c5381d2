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
  return values_.bytes() + state_.bytes() + index_.bytes() +
         static_cast<std::int64_t>(last_update_.capacity() * sizeof(std::uint32_t));
}

void HostRowStore::find_slots(std::span<const std::int64_t> ids, std::int64_t* slots) const {
  static_assert(RowIndex::kAbsent == kAbsent);
  parallel_blocks(static_cast<std::int64_t>(ids.size()), kIndexGrain,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      if (i + kPrefetchDistance < end) index_.prefetch(ids[i + kPrefetchDistance]);
                      slots[i] = in_range(ids[i]) ? index_.find(ids[i]) : kNull;
                    }
                  });
}

void HostRowStore::create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) {
  find_slots(ids, slots);
  // Insertion is serial, in the order of the ids, so that slots do not depend on the number of threads.
  const std::int64_t first_new = index_.size();
  std::vector<std::int64_t> new_ids;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (slots[i] != kAbsent) continue;
    slots[i] = index_.find_or_insert(ids[i]);
    if (slots[i] == first_new + static_cast<std::int64_t>(new_ids.size())) new_ids.push_back(ids[i]);
  }
  if (new_ids.empty()) return;

  values_.grow(index_.size());
  state_.grow(index_.size());
  last_update_.resize(static_cast<std::size_t>(index_.size()), 0);
  parallel_blocks(static_cast<std::int64_t>(new_ids.size()), row_grain(shape_.dim),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      initial_row(shape_.key, new_ids[static_cast<std::size_t>(i)], shape_.bound, shape_.dim,
                                  values_.row(first_new + i));
                    }
                  });
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
                        initial_row(shape_.key, ids[i], shape_.bound, dim, out + i * dim);
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
          const std::uint32_t last = std::atomic_ref(last_update_[static_cast<std::size_t>(slot)])
                                         .exchange(update, std::memory_order_relaxed);
          require(last != update, "expected every row once, found row {} of the update twice", i);
          optimizer.update(learning_rate, dim, gradients + i * dim, values_.row(slot), state_.row(slot));
        }
      });
}

std::vector<RowStore::Place> HostRowStore::places_by_id() const {
  std::vector<Place> places;
  places.reserve(static_cast<std::size_t>(index_.size()));
  index_.for_each([&](std::int64_t id, std::int64_t slot) { places.push_back({id, slot}); });
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
  create_slots(ids, slots.data());  // gives id i the slot i: the store was empty and the ids are distinct
  const std::int64_t dim = shape_.dim, width = shape_.state_width;
  parallel_blocks(static_cast<std::int64_t>(ids.size()), row_grain(dim),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      std::copy_n(values + i * dim, dim, values_.row(i));
                      if (width > 0) std::copy_n(state + i * width, width, state_.row(i));
                    }
                  });
}

}  // namespace hstu
