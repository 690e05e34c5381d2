#include "hstu/rows/host_row_store.h"

#include <algorithm>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"

namespace hstu {

void HostRowStore::create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) {
  const std::vector<std::int64_t> created = directory_.create_slots(ids, slots);
  if (created.empty()) return;
  values_.grow(directory_.slots());
  state_.grow(directory_.slots());
  parallel_blocks(static_cast<std::int64_t>(created.size()), row_grain(shape_.dim),
                  [&](std::int64_t begin, std::int64_t end) {
                    std::vector<float> row(static_cast<std::size_t>(shape_.dim));
                    for (std::int64_t i = begin; i < end; ++i) {
                      const std::int64_t slot = created[static_cast<std::size_t>(i)];
                      format_.begin(directory_.row(slot).id, row.data());
                      format_.store(row.data(), values_.row(slot));
                      if (shape_.state_width > 0) std::fill_n(state_.row(slot), shape_.state_width, 0.0f);
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
                      float* const row = out + i * dim;
                      if (slot >= 0) {
                        format_.load(values_.row(slot), row);
                      } else if (slot == kAbsentRow) {
                        format_.begin(ids[i], row);
                      } else {
                        std::fill_n(row, dim, 0.0f);
                      }
                    }
                  });
}

void HostRowStore::update(std::span<const std::int64_t> slots, const float* gradients,
                          const RowOptimizer& optimizer, const RowUpdate& update) {
  const std::int64_t dim = shape_.dim;
  const std::uint32_t number = directory_.next_update();
  parallel_blocks(
      static_cast<std::int64_t>(slots.size()), row_grain(dim), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t slot = slots[i];
          if (slot < 0) continue;
          require(directory_.mark_updated(slot, number),
                  "expected every row once, found row {} of the update twice", i);
          format_.update(directory_.row(slot).id, update.step, values_.row(slot), [&](float* values) {
            optimizer.update(update.learning_rate, dim, gradients + i * dim, values, state_.row(slot));
          });
        }
      });
}

void HostRowStore::read(std::span<const std::int64_t> slots, float* values, float* state) const {
  const std::int64_t dim = shape_.dim, width = shape_.state_width;
  parallel_blocks(static_cast<std::int64_t>(slots.size()), row_grain(dim),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      if (values != nullptr) format_.load(values_.row(slots[i]), values + i * dim);
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
                      directory_.row(slot).seen = 0;
                      format_.store(values + i * dim, values_.row(slot));
                      if (width > 0) std::copy_n(state + i * width, width, state_.row(slot));
                    }
                  });
}

}  // namespace hstu
